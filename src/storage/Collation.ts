import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"

/** The version of the library that orders the database's text: when it was created, or last refreshed, and now. */
interface ChangedOrder {
  readonly database: string
  readonly before: string
  readonly now: string
}

/**
 * Warns operators if text is no longer in the order in which the database's indexes were built: with a locale of the
 * operating system or of ICU, another version of that library may compare differently. An index then no longer finds all that
 * it holds, and a unique one may take the same id twice. PostgreSQL says so to each connection, where nobody reads it.
 */
export const warnOfChangedOrder: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [changed] = yield* sql<ChangedOrder>`
    SELECT datname AS database, datcollversion AS before, pg_database_collation_actual_version(oid) AS now FROM pg_database
    WHERE datname = current_database() AND datcollversion <> pg_database_collation_actual_version(oid)`
  if (changed === undefined) return
  const { before, database, now } = changed
  yield* Effect.logWarning(
    "The database may miss rows that it holds, and take a notification twice: the order of text has changed since its " +
      `indexes were built (version ${before} then, ${now} now). Stop the service and run ` +
      `REINDEX DATABASE "${database}"; ALTER DATABASE "${database}" REFRESH COLLATION VERSION. See /docs/deploying`
  )
})
