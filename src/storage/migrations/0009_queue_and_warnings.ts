import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** The queue by endpoint, and what became of a warning. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // An endpoint's own deliveries in the order in which they come due: those of slow endpoints are claimed by themselves,
  // however many of others' wait, and a deleted endpoint's are found at once
  yield* sql`CREATE INDEX delivery_queue_of_endpoint ON payments.delivery_queue (endpoint_id, next_attempt_at)`

  // When the mail server took the last warning. Null while it has taken none, or where it is not known
  yield* sql`ALTER TABLE payments.failure_warnings ADD COLUMN sent_at timestamptz`
})
