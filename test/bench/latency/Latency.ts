import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { BenchFailed, firstLine, startScript } from "../api/Processes.ts"
import { type Bench, type Figure, median } from "../Bench.ts"
import { type Database, makeEndpoint, processorTimes, startDatabase, startService } from "../deliveries/Bed.ts"
import type { LatencyResult } from "./Load.ts"
import { notified, percentile } from "./Notified.ts"

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
    const { baseUrl, organizationId, port, providerWebhookSecret } = yield* notified(database)
    yield* makeEndpoint(database, organizationId, `http://127.0.0.1:${port}/hook`)
    const [account] = yield* database.query(
      "UPDATE payments.provider_accounts SET had_payments_before = true RETURNING account_id AS id"
    )
    const measure = (rate: number) =>
      Effect.gen(function* () {
        const [before, processorBefore] = [yield* transactions(database), processorTimes(pid, database)]
        const started = yield* startScript("../latency/Load.ts", {
          args: [
            JSON.stringify({
              url: baseUrl,
              webhookSecret: providerWebhookSecret,
              accountId: account?.["id"],
              port,
              rate,
              warmUpMillis,
              millis
            })
          ]
        })
        // Written by our own load generator, in this form
        const result: LatencyResult = JSON.parse(yield* firstLine(started))
        if (result.refused + result.missing > 0) {
          return yield* new BenchFailed({
            message: `Of ${result.sent} notifications ${result.refused} were refused; ${result.missing} events are missing`
          })
        }
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
      }).pipe(Effect.scoped)
    const results = new Map(
      rates.map((rate): [number, Array<Effect.Effect.Success<ReturnType<typeof measure>>>] => [rate, []])
    )
    for (let round = 1; round <= rounds; round++) {
      yield* Console.error(`Round ${round} of ${rounds}`)
      // Connections that fall idle tell what they did only ten seconds later: it would be counted to the slowest rate
      if (round > 1) yield* Effect.promise(() => sleep(11_000))
      for (const rate of rates) results.get(rate)?.push(yield* measure(rate))
    }
    return rates.flatMap((rate): ReadonlyArray<Figure> => {
      const of = results.get(rate) ?? []
      const figure = (metric: string, unit: string, value: (result: (typeof of)[number]) => number) => ({
        bench: "latency",
        case: `${rate}/s`,
        metric,
        value: median(of.map(value)),
        unit
      })
      return [
        figure("p50_ms", "ms", ({ p50 }) => p50),
        figure("p95_ms", "ms", ({ p95 }) => p95),
        figure("p99_ms", "ms", ({ p99 }) => p99),
        figure("p95_from_sending_ms", "ms", ({ p95FromSending }) => p95FromSending),
        figure("p99_from_sending_ms", "ms", ({ p99FromSending }) => p99FromSending),
        figure("statements_per_event", "", ({ statements }) => statements),
        figure("processor_time", "µs each", ({ serviceMicros }) => serviceMicros),
        figure("postgres_processor_time", "µs each", ({ postgresMicros }) => postgresMicros)
      ]
    })
  })
}
