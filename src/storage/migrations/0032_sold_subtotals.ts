import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * What the lines of a session cost when it was created: if a payer's subtotal differs, they bought something else. Null
 * if equal subtotals would not prove that what is recorded was sold: for payment links and subscriptions, and for what
 * was recorded before.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE payments.sold_items ADD COLUMN amount_subtotal bigint`
})
