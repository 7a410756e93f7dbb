import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** The queue by endpoint, and when a warning was sent. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // An endpoint's deliveries in the order in which they come due: those of slow endpoints are claimed separately,
  // however many others wait, and a deleted endpoint's are found at once
  yield* sql`CREATE INDEX delivery_queue_of_endpoint ON payments.delivery_queue (endpoint_id, next_attempt_at)`

  // When the mail server took the last warning. Null if it has taken none, or if this is not known
  yield* sql`ALTER TABLE payments.failure_warnings ADD COLUMN sent_at timestamptz`
})
