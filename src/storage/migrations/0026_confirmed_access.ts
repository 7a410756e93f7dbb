import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"

/**
 * When a link of a connected account last found that the provider gives access to it. What was given back before that is
 * over, whenever its notification comes. The time of the link itself stays, as do the account's other records.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`
  // Null: not since it was linked
  yield* sql`ALTER TABLE payments.provider_accounts ADD COLUMN access_confirmed_at timestamptz`
})
