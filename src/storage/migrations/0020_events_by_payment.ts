import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"
import { addEventIndex, firstEventsByPayment } from "../EventIndexes.ts"

/**
 * The events of a payment, by the id in their text: no column, so that events that are stored already are found too. As
 * in 0018 a hash index in each day's table; events without a payment are not in it.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`
  yield* addEventIndex(firstEventsByPayment)
})
