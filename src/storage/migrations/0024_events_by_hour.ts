import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"
import {
  addEventIndex,
  eventsByPayment,
  eventsByPublicId,
  firstEventsByPayment,
  firstEventsByPublicId
} from "../EventIndexes.ts"

/**
 * Events by public id and by payment, within the hour in which they were stored. The hash indexes of 0018 and 0020 write
 * each new event at a random place of a day's whole index: at ten million events a day nearly each insert reads a page
 * anew, and copies it whole into the write-ahead log, 6.8 kB an event in place of 1.3. Now what is written lies in the
 * hour's part of a tree, and a search looks into each hour.
 *
 * Processes of the version before still look by the first indexes: housekeeping drops them a day later, see
 * `dropFirstEventIndexes`. A database without events has no such processes.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`
  yield* addEventIndex(eventsByPublicId)
  yield* addEventIndex(eventsByPayment)
  const [stored] = yield* sql`SELECT 1 FROM payments.events LIMIT 1`
  if (stored === undefined) {
    yield* sql`
      DROP INDEX payments.${sql.literal(firstEventsByPublicId.name)}, payments.${sql.literal(firstEventsByPayment.name)}`
  }
})
