import { performance } from "node:perf_hooks"
import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Fiber, Layer, Redacted } from "effect"
import { type ClaimedDelivery, queueStart } from "../../../src/engine/queue/Claim.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import type { EndpointId } from "../../../src/platform/kit/Ids.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { median } from "../Bench.ts"

/**
 * Claims one batch after the other from each of several queues in turns, and gives all of them back at the end of a turn.
 * Meanwhile new events are stored with their deliveries, one batch after the other, as notifications are.
 *
 * Arguments as JSON: `{databaseUrls, batch, claims, rounds}`. Writes a `ClaimsResult`.
 */

interface Options {
  readonly databaseUrls: ReadonlyArray<string>
  readonly batch: number
  readonly claims: number
  readonly rounds: number
}

/** How many milliseconds the middle one of a round's claims took, and of its inserts. */
export interface ClaimsRound {
  readonly claim: number
  readonly insert: number
}

/** Each round: by database, in their order. */
export type ClaimsResult = ReadonlyArray<ReadonlyArray<ClaimsRound>>

/** Events of an insert, each with three deliveries, and the bytes of their payloads. */
const insertedEvents = 32
const insertedBytes = 1000

/** Stores new events to the endpoint of the queue's first row, until it is interrupted. */
const insertUntilInterrupted = (sql: SqlClient.SqlClient, times: Array<number>) =>
  Effect.gen(function* () {
    const startedAt = performance.now()
    yield* sql`
      WITH target AS MATERIALIZED (
        SELECT organization_id, environment, endpoint_id, secret_ids FROM payments.delivery_queue LIMIT 1
      ), new AS MATERIALIZED (
        SELECT uuidv7()::text AS event, target.* FROM generate_series(1, ${insertedEvents}::int), target
      ), event AS (
        INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
        SELECT organization_id, environment, event, 'svc_evt_' || encode(sha256(event::bytea), 'hex'), 'payment.succeeded',
          repeat('x', ${insertedBytes}::int)
        FROM new
      ), added AS MATERIALIZED (
        SELECT uuidv7() AS id, new.* FROM new, generate_series(1, 3)
      ), delivery AS (
        INSERT INTO payments.deliveries
          (organization_id, environment, id, endpoint_id, event_id, secret_ids, attempts)
        SELECT organization_id, environment, id, endpoint_id, event, secret_ids, '{}' FROM added
      )
      INSERT INTO payments.delivery_queue
        (organization_id, environment, id, endpoint_id, event_id, secret_ids, next_attempt_at, created_at)
      SELECT organization_id, environment, id, endpoint_id, event, secret_ids, now(), now() FROM added`
    times.push(performance.now() - startedAt)
  }).pipe(Effect.forever)

// Written by the bench that starts this process, in this form
const { batch, claims, databaseUrls, rounds }: Options = JSON.parse(process.argv[2] ?? "")

const round = (queue: Queue["Type"], sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const inserts: Array<number> = []
    const inserting = yield* Effect.fork(insertUntilInterrupted(sql, inserts))
    const times: Array<number> = []
    const claimed: Array<ClaimedDelivery> = []
    // As a worker does it: each claim goes on from where the one before found the first
    let from = queueStart
    for (let number = 0; number < claims; number++) {
      const startedAt = performance.now()
      const { deliveries, place } = yield* queue.claim({
        from,
        limit: batch,
        lease: Duration.minutes(5),
        perEndpoint: batch,
        inFlight: new Map<EndpointId, number>()
      })
      times.push(performance.now() - startedAt)
      if (deliveries.length !== batch) {
        return yield* Effect.dieMessage(`${deliveries.length} were claimed, not ${batch}`)
      }
      from = place
      claimed.push(...deliveries)
    }
    yield* Fiber.interrupt(inserting)
    yield* queue.release(claimed, Duration.zero)
    return { claim: median(times), insert: median(inserts) }
  })

const program = Effect.gen(function* () {
  const queues = yield* Effect.forEach(databaseUrls, (url) =>
    Effect.map(
      Layer.build(Layer.provideMerge(Queue.layer, databaseLayer({ url: Redacted.make(url), poolSize: 2 }))),
      (built) => ({ queue: Context.get(built, Queue), sql: Context.get(built, SqlClient.SqlClient) })
    )
  )
  const measured = yield* Effect.replicateEffect(
    Effect.forEach(queues, ({ queue, sql }) => round(queue, sql)),
    rounds + 1
  )
  // The first round is not counted: plans are made and pages are read
  const result: ClaimsResult = measured.slice(1)
  yield* Effect.sync(() => process.stdout.write(`${JSON.stringify(result)}\n`))
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.withTracerEnabled(false)))
