import { readFile } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { type Bench, figuresOf, inRounds } from "../Bench.ts"
import { fillQueue, makeEndpoints, startDatabase, startReceiver, startService } from "../deliveries/Bed.ts"

/**
 * How much memory a worker takes while a million deliveries wait, and it delivers as fast as it can. It runs with a
 * provider's keys, so that nothing of the local defaults is there. Only the mode stays local, since production delivers to
 * no receiver on this machine.
 */

const backlog = 1_000_000
const rounds = 3
const millis = 15_000

const providerKeys = { PROVIDER_SANDBOX_SECRET_KEY: "sk_test_bench", PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_bench" }

/** Megabytes that a process holds in memory. */
export const residentMegabytes = (pid: number) =>
  Effect.promise(async () => {
    const status = await readFile(`/proc/${pid}/status`, "utf8")
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
  })

/** `npm run bench -- memory`. */
export const memoryBench: Bench = {
  name: "memory",
  about: "the worker's resident memory at a backlog of a million",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the database and the receiver, filling the queue…")
    const database = yield* startDatabase
    const receiver = yield* startReceiver(64)
    const endpoints = yield* makeEndpoints(database, receiver.urls)
    yield* fillQueue(database, endpoints, backlog)
    const measure = Effect.gen(function* () {
      const { pid } = yield* startService(database, "worker", providerKeys)
      const before = yield* receiver.look
      let highest = 0
      for (let waited = 0; waited < millis; waited += 100) {
        highest = Math.max(highest, yield* residentMegabytes(pid))
        yield* Effect.promise(() => sleep(100))
      }
      const after = yield* receiver.look
      yield* Console.error(`  ${highest.toFixed(0)} MB, ${after.received - before.received} delivered meanwhile`)
      return highest
    }).pipe(Effect.scoped)
    const highest = yield* inRounds(rounds, () => measure)
    return [figuresOf("memory", highest)("1,000,000 waiting", "rss_mb", "MB", (megabytes) => megabytes)]
  })
}
