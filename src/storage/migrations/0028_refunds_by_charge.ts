import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"
import { addEventIndex, refundsByCharge } from "../EventIndexes.ts"

/**
 * Refunds of charges that belong to no payment, by their charge. A refund event says how much has been refunded of its
 * charge so far: the counts by day need the events before it, and for these no index had them.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`
  yield* addEventIndex(refundsByCharge)
})
