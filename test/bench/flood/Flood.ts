import { createHash } from "node:crypto"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect, Redacted } from "effect"
import { startEmbeddedPostgres } from "../../../src/platform/storage/EmbeddedPostgres.ts"
import { ask } from "../../harness/Connection.ts"
import { measure, seed, startService } from "../api/Api.ts"
import { directoryOfItsOwn, firstLine, startScript, traceSink } from "../api/Processes.ts"
import { type Bench, figuresOf, inRounds } from "../Bench.ts"
import type { LoadOptions } from "../Load.ts"

/** What good keys notice of 64 connections that send a made-up key, or a key whose limit is used up, as fast as they can. */

const floodConnections = 64
const goodConnections = 4
const rounds = 3

/** Uses up a key's limit, for longer than the bench takes. */
const exhaust = (databaseUrl: string, key: string) =>
  ask(
    databaseUrl,
    `INSERT INTO payments.rate_limits (bucket, tokens, allowed, refilled_at)
     SELECT 'key:' || id, -1e12, false, clock_timestamp() FROM payments.api_keys WHERE key_hash = $1
     ON CONFLICT (bucket) DO UPDATE SET tokens = excluded.tokens, refilled_at = excluded.refilled_at`,
    [createHash("sha256").update(key).digest()]
  )

/** `npm run bench -- flood`. */
export const floodBench: Bench = {
  name: "flood",
  about: "good keys beside 64 connections with a made-up key, and with one whose limit is used up",
  run: Effect.gen(function* () {
    const directory = yield* directoryOfItsOwn
    const database = yield* startEmbeddedPostgres({ directory: join(directory, "postgres") })
    const databaseUrl = Redacted.value(database.url)
    yield* Console.error("Starting the service…")
    const service = yield* startService(directory, databaseUrl, yield* traceSink)
    const { keys, paths } = yield* seed(databaseUrl, service)
    const [exhausted = "", ...good] = keys
    const measured = (name: string) =>
      measure({ name, server: service, keys: good, paths, connections: goodConnections })
    const beside = (name: string, key: string) =>
      Effect.gen(function* () {
        const flood: LoadOptions = {
          url: service.baseUrl,
          paths: paths.slice(0, 1),
          keys: [key],
          connections: floodConnections,
          warmUpMillis: 0
        }
        yield* firstLine(yield* startScript(new URL("../Load.ts", import.meta.url), { args: [JSON.stringify(flood)] }))
        yield* Effect.promise(() => sleep(500))
        return yield* measured(name)
      }).pipe(Effect.scoped)
    const round = Effect.gen(function* () {
      const quiet = yield* measured("quiet")
      const madeUp = yield* beside("beside a made-up key", `pk_test_${"A".repeat(43)}`)
      yield* exhaust(databaseUrl, exhausted)
      const usedUp = yield* beside("beside a used-up key", exhausted)
      return { quiet, madeUp, usedUp }
    })
    const results = yield* inRounds(rounds, () => round)
    const figure = figuresOf("flood", results)
    return (["quiet", "madeUp", "usedUp"] as const).flatMap((name) => [
      figure(name, "rate", "requests/s", (one) => one[name].rate),
      figure(name, "p50", "ms", (one) => one[name].p50),
      figure(name, "p99", "ms", (one) => one[name].p99),
      figure(name, "p99_ratio_to_quiet", "", (one) => one[name].p99 / one.quiet.p99)
    ])
  })
}
