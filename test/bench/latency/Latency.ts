import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { type Bench, figuresOfCases, inRounds, percentile } from "../Bench.ts"
import { costOf, startDatabase, startService, transactions } from "../deliveries/Bed.ts"
import { roundsOf } from "../sizes.ts"
import type { LatencyResult } from "./Load.ts"
import { notified } from "./Notified.ts"

/**
 * How long news takes, from the 200 that the provider gets to the first byte that the consumer gets, and what an event costs:
 * taken, stored, sent and recorded. With one process, and with a worker in a second process beside it, in turns.
 */

/** Events per second. `BENCH_RATES` changes them: `BENCH_RATES=2500` shows whether one process keeps up with as many. */
const rates = (process.env["BENCH_RATES"] ?? "10,200,1000").split(",").map(Number)
/** From this rate on, it is measured with a second process as well: with fewer events, a worker beside has nothing to do. */
const leastBeside = 100
const rounds = roundsOf(3)
const warmUpMillis = 2000
const millis = 8000

const ratesBeside = rates.filter((rate) => rate >= leastBeside)
const nameOf = (rate: number, processes: number) => `${rate}/s${processes === 1 ? "" : ", a worker beside"}`

export const latencyBench: Bench = {
  name: "latency",
  about: "from the provider's 200 to the consumer, at 10, 200 and 1,000 events per second, and what an event costs",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    const service = yield* startService(database, "all")
    const { load } = yield* notified(database, 1)
    const measure = (services: ReadonlyArray<{ readonly pid: number }>) => (rate: number) =>
      Effect.gen(function* () {
        const before = yield* transactions(database)
        // The server counts a second late
        const loading = Effect.tap(
          load({ rate, warmUpMillis, millis }),
          Effect.promise(() => sleep(1200))
        )
        const cost = yield* costOf(database, services, loading)
        const statements = ((yield* transactions(database)) - before) / cost.count
        const at = (share: number) => percentile(cost.afterAnswer, share)
        yield* Console.error(
          `  ${nameOf(rate, services.length)}: p50 ${at(0.5).toFixed(1)}, p95 ${at(0.95).toFixed(1)}, p99 ${at(0.99).toFixed(1)} ms, ${statements.toFixed(2)} statements, ${(cost.wakeUps + cost.postgresWakeUps).toFixed(1)} wake-ups and ${Math.round(cost.processor + cost.postgres)} µs of processor time per event`
        )
        return { ...cost, statements }
      })
    const results = yield* inRounds(rounds, (number) =>
      Effect.gen(function* () {
        // Connections that fall idle tell what they did only ten seconds later: it would be counted to the slowest rate
        if (number > 1) yield* Effect.promise(() => sleep(11_000))
        const alone = yield* Effect.forEach(rates, measure([service]))
        const beside = Effect.gen(function* () {
          const worker = yield* startService(database, "worker", { DATA_DIR: join(database.directory, "worker") })
          return yield* Effect.forEach(ratesBeside, measure([service, worker]))
        })
        return [...alone, ...(ratesBeside.length === 0 ? [] : yield* Effect.scoped(beside))]
      })
    )
    return figuresOfCases<(typeof results)[number][number]>(
      "latency",
      [...rates.map((rate) => nameOf(rate, 1)), ...ratesBeside.map((rate) => nameOf(rate, 2))],
      results,
      [
        ...[0.5, 0.95, 0.99].map(
          (share) =>
            [`p${100 * share}_ms`, "ms", ({ afterAnswer }: LatencyResult) => percentile(afterAnswer, share)] as const
        ),
        ...[0.95, 0.99].map(
          (share) =>
            [
              `p${100 * share}_from_sending_ms`,
              "ms",
              ({ afterSending }: LatencyResult) => percentile(afterSending, share)
            ] as const
        ),
        ["statements_per_event", "", ({ statements }) => statements],
        ["processor_time", "µs each", ({ processor }) => processor],
        ["postgres_processor_time", "µs each", ({ postgres }) => postgres],
        ["wake_ups", "each", ({ wakeUps }) => wakeUps],
        ["postgres_wake_ups", "each", ({ postgresWakeUps }) => postgresWakeUps]
      ]
    )
  })
}
