import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"

/** What is removed by its age is found by it, a batch at a time, however much is left. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`
  yield* sql`CREATE INDEX invitations_expiry ON payments.invitations (expires_at)`
  // Of sessions, which are the provider's `cs_…`: what a payment link sells is kept as long as it may sell
  yield* sql`
    CREATE INDEX sold_items_of_sessions_age ON payments.sold_items (created_at) WHERE starts_with(source_id, 'cs_')`
  yield* sql`CREATE INDEX recoveries_age ON payments.recoveries (finished_at) WHERE state = 'finished'`
  yield* sql`CREATE INDEX event_replays_age ON payments.event_replays (finished_at) WHERE state <> 'running'`
})
