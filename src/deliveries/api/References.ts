import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"

/** How many of the waiting deliveries are looked at: those that have waited longest, where what is amiss stays. */
const lookedAt = 1000

/** How many ids a log line names. */
const named = 5

/** A waiting delivery, and what is missing of what its row refers to. */
interface Dangling {
  readonly id: string
  readonly delivery: boolean
  readonly event: boolean
  readonly endpoint: boolean
}

/**
 * Reports waiting deliveries whose history, event or endpoint is missing: they can't be sent. The statements that store
 * and remove rows allow none, and there are no foreign keys to hold them to that (see migration 0014). For operators.
 */
export const checkReferences: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const dangling = yield* sql<Dangling>`
    SELECT id, delivery, event, endpoint FROM (
      SELECT q.id,
        (SELECT 1 FROM payments.deliveries d WHERE d.organization_id = q.organization_id
          AND d.environment = q.environment AND d.id = q.id) IS NULL AS delivery,
        (SELECT 1 FROM payments.events e WHERE e.organization_id = q.organization_id
          AND e.environment = q.environment AND e.id = q.event_id) IS NULL AS event,
        (SELECT 1 FROM payments.endpoints p WHERE p.organization_id = q.organization_id
          AND p.environment = q.environment AND p.id = q.endpoint_id) IS NULL AS endpoint
      FROM (SELECT * FROM payments.delivery_queue ORDER BY next_attempt_at LIMIT ${lookedAt}) AS q
    ) AS waiting WHERE delivery OR event OR endpoint`
  if (dangling.length === 0) return
  const count = (part: keyof Omit<Dangling, "id">) => dangling.filter((one) => one[part]).length
  yield* Effect.logError(
    "Waiting deliveries lack what they refer to, and can't be sent: restore it from a backup"
  ).pipe(
    Effect.annotateLogs({
      deliveries: dangling.length,
      withoutHistory: count("delivery"),
      withoutEvent: count("event"),
      withoutEndpoint: count("endpoint"),
      ids: dangling.slice(0, named).map(({ id }) => id)
    })
  )
})
