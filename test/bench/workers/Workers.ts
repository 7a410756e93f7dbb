import { Console, Effect } from "effect"
import { temporaryDirectory } from "../../platform/storage/fixtures/temporaryDirectory.ts"
import { type Bench, figuresOfCases, inRounds, ratioToFirst } from "../Bench.ts"
import {
  addDeliveries,
  type BenchEndpoint,
  costMetrics,
  costOf,
  type Database,
  emptyQueue,
  makeEndpoints,
  startDatabaseIn,
  startReceiver,
  startService,
  wakeWorkers
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

const cases = [1, 2, 4]
const names = ["1 worker", "2 workers", "4 workers"]

/** A database that counts what each statement costs; that needs a start with the setting. */
const countingDatabase = Effect.gen(function* () {
  const directory = yield* temporaryDirectory
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

type Receiver = Effect.Effect.Success<ReturnType<typeof startReceiver>>

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

const queueBacklog = (database: Database) =>
  Effect.zipRight(database.query("INSERT INTO payments.delivery_queue SELECT * FROM backlog"), wakeWorkers(database))

const measure = (
  database: Database,
  endpoints: ReadonlyArray<BenchEndpoint>,
  { look, until }: Receiver,
  workers: number
) =>
  Effect.gen(function* () {
    yield* prepareBacklog(database, endpoints, backlog)
    return yield* Effect.gen(function* () {
      const services = yield* Effect.replicateEffect(startService(database, "worker"), workers)
      const { received } = yield* look
      yield* queueBacklog(database)
      const seenBefore = yield* until(received + warmUp)
      const before = yield* claimCosts(database)
      const cost = yield* costOf(
        database,
        services,
        Effect.map(until(seenBefore + measured), (seen) => ({ count: seen - seenBefore }))
      )
      const after = yield* claimCosts(database)
      const calls = after.calls - before.calls
      yield* Console.error(`  ${workers}: ${Math.round(cost.rate)}/s`)
      return {
        ...cost,
        claimMillis: (after.millis - before.millis) / calls,
        perClaim: cost.count / calls,
        buffers: (after.buffers - before.buffers) / cost.count
      }
    }).pipe(Effect.scoped)
  })

export const workersBench: Bench = {
  name: "workers",
  about: "a backlog delivered by one, two and four workers on one database",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the database and the receiver…")
    const database = yield* countingDatabase
    const receiver = yield* startReceiver(endpointCount)
    const endpoints = yield* makeEndpoints(database, receiver.urls)
    const results = yield* inRounds(rounds, () =>
      Effect.forEach(cases, (one) => measure(database, endpoints, receiver, one))
    )
    return figuresOfCases<(typeof results)[number][number]>("workers", names, results, [
      ...costMetrics,
      ratioToFirst("rate_to_one_worker", ({ rate }) => rate),
      ["claim_ms", "ms", ({ claimMillis }) => claimMillis],
      ["deliveries_per_claim", "", ({ perClaim }) => perClaim],
      ["claim_buffers", "each", ({ buffers }) => buffers]
    ])
  })
}
