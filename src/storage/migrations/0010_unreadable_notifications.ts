import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** Why a notification could not be read: the paths of the fields that are missing or not as expected, never values. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE payments.receipts ADD COLUMN reason text`
})
