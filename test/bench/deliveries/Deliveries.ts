import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { answerOf, BenchFailed } from "../api/Processes.ts"
import { type Bench, figuresOf, inRounds } from "../Bench.ts"
import { roundsOf } from "../sizes.ts"
import type { BareOptions, BareResult } from "./BareQueue.ts"
import {
  addDeliveries,
  type BenchEndpoint,
  costOf,
  type Database,
  emptyQueue,
  makeEndpoints,
  payloadBytes,
  startDatabase,
  startReceiver,
  startService
} from "./Bed.ts"
import type { RawResult } from "./RawPosts.ts"

/**
 * How fast the worker empties a backlog: the real service, traced, against the same POSTs without a database and
 * against the queue's statements without a POST, in turns in one run.
 */

/** `BENCH_ENDPOINTS` changes it: few of them show what one alone gets. */
const endpointCount = Number(process.env["BENCH_ENDPOINTS"] ?? 64)
const inFlight = 256
const rounds = roundsOf(3)
/** In its first seconds, a process waits for its compiler: the service delivers 4,000 in its first, and full speed is after six. */
const warmUpMillis = 6000
const millis = 5000

/** More than a round can deliver. */
const backlog = 250_000

const measureRaw = (ports: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const payload = `{"id":"svc_evt_1","pad":"${"x".repeat(payloadBytes - 26)}"}`
    const raw = yield* answerOf<RawResult>(new URL("./RawPosts.ts", import.meta.url), {
      ports,
      inFlight,
      payload,
      warmUpMillis,
      millis
    })
    yield* Console.error(`  raw POSTs: ${Math.round(raw.sent / raw.seconds)}/s`)
    return { rate: raw.sent / raw.seconds, processor: raw.processorMicros }
  })

const refill = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>) =>
  Effect.gen(function* () {
    yield* emptyQueue(database)
    yield* addDeliveries(database, endpoints, backlog)
    yield* database.query("VACUUM ANALYZE payments.deliveries, payments.delivery_queue, payments.events")
    yield* database.query("CHECKPOINT")
  })

const measureBare = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>, client: BareOptions["client"]) =>
  Effect.gen(function* () {
    yield* refill(database, endpoints)
    const bare = yield* answerOf<BareResult>(new URL("./BareQueue.ts", import.meta.url), {
      databaseUrl: database.url,
      client,
      batch: 128,
      warmUpMillis: 2000,
      millis
    })
    const { claimMillis, finishMillis, moved, seconds } = bare
    yield* Console.error(
      `  bare queue, ${client}: ${Math.round(moved / seconds)}/s, claim ${claimMillis.toFixed(1)} ms, finish ${finishMillis.toFixed(1)} ms`
    )
    return { rate: moved / seconds }
  })

const measureService = (
  database: Database,
  endpoints: ReadonlyArray<BenchEndpoint>,
  receiver: Effect.Effect.Success<ReturnType<typeof startReceiver>>
) =>
  Effect.gen(function* () {
    yield* refill(database, endpoints)
    const delivered = Effect.map(
      database.query("SELECT count(*)::int AS count FROM payments.deliveries WHERE state = 'delivered'"),
      ([row]) => Number(row?.["count"])
    )
    const { pid } = yield* startService(database, "worker")
    yield* Effect.promise(() => sleep(warmUpMillis))
    const cost = yield* costOf(database, [{ pid }], receiver.receivedIn(millis))
    const recorded = yield* delivered
    yield* Console.error(`  service: ${Math.round(cost.rate)}/s`)
    if (recorded === 0 || recorded >= backlog) {
      return yield* new BenchFailed({ message: `${recorded} of ${backlog} were delivered: nothing to measure by` })
    }
    return cost
  }).pipe(Effect.scoped)

export const deliveriesBench: Bench = {
  name: "deliveries",
  about: "a backlog delivered, against raw POSTs and against the queue alone",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    const receiver = yield* startReceiver(endpointCount)
    const endpoints = yield* makeEndpoints(database, receiver.urls)
    const results = yield* inRounds(rounds, () =>
      Effect.all({
        raw: measureRaw(receiver.ports),
        service: measureService(database, endpoints, receiver),
        bare: measureBare(database, endpoints, "databaseLayer"),
        plainBare: measureBare(database, endpoints, "PgClient")
      })
    )
    const figure = figuresOf("deliveries", results)
    return [
      figure("raw POSTs", "rate", "1/s", ({ raw }) => raw.rate),
      figure("raw POSTs", "processor_time", "µs each", ({ raw }) => raw.processor),
      figure("bare claim and finish", "rate", "1/s", ({ bare }) => bare.rate),
      figure("bare, on a plain PgClient", "rate", "1/s", ({ plainBare }) => plainBare.rate),
      figure("service", "rate", "1/s", ({ service }) => service.rate),
      figure("service", "processor_time", "µs each", ({ service }) => service.processor),
      figure("service", "postgres_processor_time", "µs each", ({ service }) => service.postgres),
      // Each round's ratio by itself: what else the machine does changes from one to the next
      figure("service", "ratio_to_raw_post", "", ({ raw, service }) => service.rate / raw.rate),
      figure("service", "ratio_to_bare_queue", "", ({ bare, service }) => service.rate / bare.rate)
    ]
  })
}
