import { createHash } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import { measure, seed, startApi } from "../api/Api.ts"
import { firstLine, startScript } from "../api/Processes.ts"
import { type Bench, figuresOfCases, inRounds, ratioToFirst } from "../Bench.ts"
import { type Database, startDatabase } from "../deliveries/Bed.ts"
import type { LoadOptions } from "../Load.ts"

/** What good keys notice of 64 connections that send a made-up key, or a key whose limit is used up, as fast as they can. */

const floodConnections = 64
const goodConnections = 4
const rounds = 3

/** Uses up a key's limit, for longer than the bench takes. */
const exhaust = ({ query }: Database, key: string) =>
  query(
    `INSERT INTO payments.rate_limits (bucket, tokens, allowed, refilled_at)
     SELECT 'key:' || id, -1e12, false, clock_timestamp() FROM payments.api_keys WHERE key_hash = $1
     ON CONFLICT (bucket) DO UPDATE SET tokens = excluded.tokens, refilled_at = excluded.refilled_at`,
    [createHash("sha256").update(key).digest()]
  )

export const floodBench: Bench = {
  name: "flood",
  about: "good keys beside 64 connections with a made-up key, and with one whose limit is used up",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    const service = yield* startApi(database)
    const { keys, paths } = yield* seed(database, service)
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
    const results = yield* inRounds(rounds, () =>
      Effect.all([
        measured("quiet"),
        beside("beside a made-up key", `pk_test_${"A".repeat(43)}`),
        Effect.zipRight(exhaust(database, exhausted), beside("beside a used-up key", exhausted))
      ])
    )
    return figuresOfCases<(typeof results)[number][number]>(
      "flood",
      ["quiet", "beside a made-up key", "beside a used-up key"],
      results,
      [
        ["rate", "requests/s", ({ rate }) => rate],
        ["p50", "ms", ({ p50 }) => p50],
        ["p99", "ms", ({ p99 }) => p99],
        ratioToFirst("p99_ratio_to_quiet", ({ p99 }) => p99)
      ]
    )
  })
}
