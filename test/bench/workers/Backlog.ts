import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import { addDeliveries, type BenchEndpoint, type Database, emptyQueue, type startReceiver } from "../deliveries/Bed.ts"

/** A backlog of deliveries for several workers. */

/** A backlog that stands ready beside the queue. */
export const prepareBacklog = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>, size: number) =>
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
export const queueBacklog = (database: Database) =>
  Effect.zipRight(
    database.query("INSERT INTO payments.delivery_queue SELECT * FROM backlog"),
    database.query("SELECT pg_notify('connected_payments_deliveries', 'bench')")
  )

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
