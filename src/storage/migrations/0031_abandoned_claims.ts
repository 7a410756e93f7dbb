import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * How many claims of a waiting delivery were abandoned, because their workers died: they take none of its automatic attempts,
 * and the delivery rests for longer after each.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE payments.delivery_queue ADD COLUMN abandoned smallint NOT NULL DEFAULT 0`
})
