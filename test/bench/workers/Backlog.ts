import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import { shardCount } from "../../../src/storage/Shards.ts"
import { BenchFailed } from "../api/Processes.ts"
import { addDeliveries, type BenchEndpoint, type Database, emptyQueue, type startReceiver } from "../deliveries/Bed.ts"

/** A backlog of deliveries for several workers. */

/** A backlog that stands ready beside the queue. */
export const prepareBacklog = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>, size: number) =>
  Effect.gen(function* () {
    yield* emptyQueue(database)
    yield* database.query("TRUNCATE payments.cluster_runners, payments.cluster_locks")
    yield* addDeliveries(database, endpoints, size)
    yield* database.query("DROP TABLE IF EXISTS backlog")
    yield* database.query("CREATE TABLE backlog AS SELECT * FROM payments.delivery_queue")
    yield* database.query("TRUNCATE payments.delivery_queue")
    yield* database.query("VACUUM ANALYZE payments.deliveries, payments.events")
    yield* database.query("CHECKPOINT")
  })

/** Queues the backlog, and wakes the workers. */
export const queueBacklog = (database: Database) =>
  Effect.zipRight(
    database.query("INSERT INTO payments.delivery_queue SELECT * FROM backlog"),
    database.query("SELECT pg_notify('connected_payments_deliveries', 'bench')")
  )

/** Waits until so many workers hold all shards. */
export const untilShared = (database: Database, workers: number) =>
  Effect.gen(function* () {
    for (let tries = 0; tries < 300; tries++) {
      const [row] = yield* database.query(
        "SELECT count(*)::int AS shards, count(DISTINCT address)::int AS workers FROM payments.cluster_locks"
      )
      if (row?.["shards"] === shardCount && row["workers"] === workers) return
      yield* Effect.promise(() => sleep(100))
    }
    return yield* new BenchFailed({ message: `${workers} workers don't share the endpoints` })
  })

/** Waits until so many were received; answers how many there were then. */
export const untilReceived = (
  look: Effect.Effect.Success<ReturnType<typeof startReceiver>>["look"],
  least: number
): Effect.Effect<number> =>
  Effect.flatMap(look, ({ received }) =>
    received >= least
      ? Effect.succeed(received)
      : Effect.zipRight(
          Effect.promise(() => sleep(50)),
          untilReceived(look, least)
        )
  )
