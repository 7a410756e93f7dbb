import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"

/**
 * A tenant's endpoints without those that are deleted. These stay for their history, and a program may create and delete
 * one after the other: each notification, list and new endpoint then read all that there ever were.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`
  yield* sql`
    CREATE INDEX endpoints_in_use ON payments.endpoints (organization_id, environment, id) WHERE deleted_at IS NULL`
})
