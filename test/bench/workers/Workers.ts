import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { directoryOfItsOwn } from "../api/Processes.ts"
import { type Bench, figuresOf, inRounds } from "../Bench.ts"
import {
  addDeliveries,
  type BenchEndpoint,
  type Database,
  emptyQueue,
  makeEndpoints,
  processorTimes,
  startDatabaseIn,
  startReceiver,
  startService
} from "../deliveries/Bed.ts"
import { roundsOf, share } from "../sizes.ts"

/**
 * One, two and four workers that empty a backlog on one database, in turns in one run. All of it is on the same processors,
 * so what a delivery costs, and whom, says more than the rate: `src/docs/guides/growth.md` computes from it how many workers on
 * further machines one PostgreSQL serves.
 */

const endpointCount = 128
const rounds = roundsOf(3)

/** How many deliveries are made before the measurement, and at least within it. */
const warmUp = 40_000 * share
const measured = 30_000 * share

/** More than both, and what is delivered while the bench looks away. */
const backlog = 90_000 * share

const cases = [
  { name: "1 worker", workers: 1 },
  { name: "2 workers", workers: 2 },
  { name: "4 workers", workers: 4 }
] as const

type Case = (typeof cases)[number]

/** A database that counts what each statement costs; that needs a start with the setting. */
const countingDatabase = Effect.gen(function* () {
  const directory = yield* directoryOfItsOwn
  yield* Effect.scoped(
    Effect.flatMap(startDatabaseIn(directory), ({ query }) =>
      query("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
    )
  )
  const database = yield* startDatabaseIn(directory)
  yield* database.query("CREATE EXTENSION pg_stat_statements")
  return database
})

interface ClaimCosts {
  readonly calls: number
  readonly millis: number
  readonly buffers: number
}

/** What all claims cost so far. */
const claimCosts = (database: Database) =>
  Effect.map(
    database.query(`
      SELECT COALESCE(sum(calls), 0)::float AS calls, COALESCE(sum(total_exec_time), 0)::float AS millis,
        COALESCE(sum(shared_blks_hit + shared_blks_read), 0)::float AS buffers
      FROM pg_stat_statements WHERE query LIKE '%chosen AS MATERIALIZED%'`),
    ([row]): ClaimCosts => ({
      calls: Number(row?.["calls"]),
      millis: Number(row?.["millis"]),
      buffers: Number(row?.["buffers"])
    })
  )

type Look = Effect.Effect.Success<ReturnType<typeof startReceiver>>["look"]

/** A backlog that stands ready beside the queue. */
const prepareBacklog = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>, size: number) =>
  Effect.gen(function* () {
    yield* emptyQueue(database)
    yield* addDeliveries(database, endpoints, size)
    yield* database.query("DROP TABLE IF EXISTS backlog")
    yield* database.query("CREATE TABLE backlog AS SELECT * FROM payments.delivery_queue")
    yield* database.query("TRUNCATE payments.delivery_queue")
    yield* database.query("VACUUM ANALYZE payments.deliveries, payments.events")
    yield* database.query("CHECKPOINT")
  })

/** Queues the backlog, and wakes the workers. */
const queueBacklog = (database: Database) =>
  Effect.zipRight(
    database.query("INSERT INTO payments.delivery_queue SELECT * FROM backlog"),
    database.query("SELECT pg_notify('connected_payments_deliveries', 'bench')")
  )

/** Waits until so many were received; answers how many there were then. */
const untilReceived = (look: Look, least: number): Effect.Effect<number> =>
  Effect.flatMap(look, ({ received }) =>
    received >= least
      ? Effect.succeed(received)
      : Effect.zipRight(
          Effect.promise(() => sleep(50)),
          untilReceived(look, least)
        )
  )

const measure = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>, look: Look, { name, workers }: Case) =>
  Effect.gen(function* () {
    yield* prepareBacklog(database, endpoints, backlog)
    return yield* Effect.gen(function* () {
      const services = yield* Effect.replicateEffect(startService(database, "worker"), workers)
      const { received } = yield* look
      yield* queueBacklog(database)
      const processors = () => services.map(({ pid }) => processorTimes(pid, database))
      const seenBefore = yield* untilReceived(look, received + warmUp)
      const [costsBefore, before, startedAt] = [yield* claimCosts(database), processors(), performance.now()]
      const seenAfter = yield* untilReceived(look, seenBefore + measured)
      const [costsAfter, after, endedAt] = [yield* claimCosts(database), processors(), performance.now()]
      const count = seenAfter - seenBefore
      const calls = costsAfter.calls - costsBefore.calls
      const service = after.reduce((sum, one, index) => sum + one.service - (before[index]?.service ?? Number.NaN), 0)
      const postgres = (after[0]?.postgres ?? Number.NaN) - (before[0]?.postgres ?? Number.NaN)
      const rate = (count / (endedAt - startedAt)) * 1000
      yield* Console.error(`  ${name}: ${Math.round(rate)}/s`)
      return {
        rate,
        processor: service / count,
        postgres: postgres / count,
        claimMillis: (costsAfter.millis - costsBefore.millis) / calls,
        perClaim: count / calls,
        buffers: (costsAfter.buffers - costsBefore.buffers) / count
      }
    }).pipe(Effect.scoped)
  })

/** `npm run bench -- workers`. */
export const workersBench: Bench = {
  name: "workers",
  about: "a backlog delivered by one, two and four workers on one database",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the database and the receiver…")
    const database = yield* countingDatabase
    const receiver = yield* startReceiver(endpointCount)
    const endpoints = yield* makeEndpoints(database, receiver.urls)
    const results = yield* inRounds(rounds, () =>
      Effect.forEach(cases, (one) => measure(database, endpoints, receiver.look, one))
    )
    return cases.flatMap(({ name }, index) => {
      const figure = figuresOf(
        "workers",
        results.flatMap((round) => round[index] ?? [])
      )
      return [
        figure(name, "rate", "1/s", ({ rate }) => rate),
        figure(name, "processor_time", "µs each", ({ processor }) => processor),
        figure(name, "postgres_processor_time", "µs each", ({ postgres }) => postgres),
        // Of both together: a core of PostgreSQL keeps (100 - share) / share cores of workers busy
        figure(name, "postgres_share", "%", ({ postgres, processor }) => (100 * postgres) / (postgres + processor)),
        figure(name, "claim_ms", "ms", ({ claimMillis }) => claimMillis),
        figure(name, "deliveries_per_claim", "", ({ perClaim }) => perClaim),
        figure(name, "claim_buffers", "each", ({ buffers }) => buffers)
      ]
    })
  })
}
