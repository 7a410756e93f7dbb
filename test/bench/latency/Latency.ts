import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { type Bench, figuresOf, inRounds, percentile } from "../Bench.ts"
import { type Database, processorTimes, startDatabase, startService } from "../deliveries/Bed.ts"
import { notified } from "./Notified.ts"

/**
 * How long news takes, from the 200 that the provider gets to the first byte that the consumer gets, and what an event costs:
 * taken, stored, sent and recorded.
 */

/** Events per second. `BENCH_RATES` changes them: `BENCH_RATES=2500` shows whether one process keeps up with as many. */
const rates = (process.env["BENCH_RATES"] ?? "10,200,1000").split(",").map(Number)
const rounds = 3
const warmUpMillis = 2000
const millis = 8000

/** Transactions that the database has seen; each statement of the service's own is one, as is each transaction. */
const transactions = (database: Database) =>
  Effect.map(
    database.query("SELECT xact_commit::float8 AS count FROM pg_stat_database WHERE datname = current_database()"),
    ([row]) => Number(row?.["count"])
  )

/** `npm run bench -- latency`. */
export const latencyBench: Bench = {
  name: "latency",
  about: "from the provider's 200 to the consumer, at 10, 200 and 1,000 events per second, and what an event costs",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the database and the service…")
    const database = yield* startDatabase
    const { pid } = yield* startService(database, "all")
    const { load } = yield* notified(database, 1)
    const measure = (rate: number) =>
      Effect.gen(function* () {
        const [before, processorBefore] = [yield* transactions(database), processorTimes(pid, database)]
        const result = yield* load({ rate, warmUpMillis, millis })
        // The server counts a second late
        yield* Effect.promise(() => sleep(1200))
        const events = rate * ((warmUpMillis + millis) / 1000)
        const statements = ((yield* transactions(database)) - before) / events
        const processor = processorTimes(pid, database)
        const serviceMicros = (processor.service - processorBefore.service) / events
        const postgresMicros = (processor.postgres - processorBefore.postgres) / events
        const at = (share: number) => percentile(result.afterAnswer, share)
        yield* Console.error(
          `  ${rate}/s: p50 ${at(0.5).toFixed(1)}, p95 ${at(0.95).toFixed(1)}, p99 ${at(0.99).toFixed(1)} ms, ${statements.toFixed(2)} statements and ${Math.round(serviceMicros + postgresMicros)} µs of processor time per event`
        )
        return {
          p50: at(0.5),
          p95: at(0.95),
          p99: at(0.99),
          p95FromSending: percentile(result.afterSending, 0.95),
          p99FromSending: percentile(result.afterSending, 0.99),
          statements,
          serviceMicros,
          postgresMicros
        }
      })
    const results = yield* inRounds(rounds, (number) =>
      Effect.gen(function* () {
        // Connections that fall idle tell what they did only ten seconds later: it would be counted to the slowest rate
        if (number > 1) yield* Effect.promise(() => sleep(11_000))
        return yield* Effect.forEach(rates, measure)
      })
    )
    return rates.flatMap((rate, index) => {
      const figure = figuresOf(
        "latency",
        results.flatMap((round) => round[index] ?? [])
      )
      const name = `${rate}/s`
      return [
        figure(name, "p50_ms", "ms", ({ p50 }) => p50),
        figure(name, "p95_ms", "ms", ({ p95 }) => p95),
        figure(name, "p99_ms", "ms", ({ p99 }) => p99),
        figure(name, "p95_from_sending_ms", "ms", ({ p95FromSending }) => p95FromSending),
        figure(name, "p99_from_sending_ms", "ms", ({ p99FromSending }) => p99FromSending),
        figure(name, "statements_per_event", "", ({ statements }) => statements),
        figure(name, "processor_time", "µs each", ({ serviceMicros }) => serviceMicros),
        figure(name, "postgres_processor_time", "µs each", ({ postgresMicros }) => postgresMicros)
      ]
    })
  })
}
