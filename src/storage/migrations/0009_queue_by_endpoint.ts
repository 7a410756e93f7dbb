import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * An endpoint's own deliveries in the queue, in the order in which they come due: those of slow endpoints are claimed by
 * themselves, however many of others' wait, and a deleted endpoint's are found at once.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE INDEX delivery_queue_of_endpoint ON payments.delivery_queue (endpoint_id, next_attempt_at)`
})
