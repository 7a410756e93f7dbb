import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * The order in which an organization's sandbox events are streamed. Sandbox only: a production event, whose insert is
 * the hot one, pays nothing for it.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    CREATE INDEX events_streamed ON payments.events (organization_id, created_at) WHERE environment = 'sandbox'`
})
