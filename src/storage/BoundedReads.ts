import type { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"
import { transaction } from "./Database.ts"

/** How long the search for a page may take, in milliseconds; after that the answer is 503. */
export const searchTimeout = "3000"

/**
 * Has what follows in the transaction walk along an index and stop at its limit. The planner thinks of a range of recent
 * rows, which its statistics do not know yet, as a few: it would read and sort them all.
 */
export const alongIndex = (sql: SqlClient.SqlClient) =>
  sql`SELECT set_config('enable_sort', 'off', true), set_config('enable_seqscan', 'off', true)`

/** Reads a page in a transaction that may not search for longer than `searchTimeout`. */
export const timedRead =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(search: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    sql`SET LOCAL statement_timeout = ${sql.literal(searchTimeout)}`.pipe(Effect.zipRight(search), transaction(sql))

/** The same, and follows an index: see `alongIndex`. */
export const boundedRead =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(search: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    timedRead(sql)(Effect.zipRight(alongIndex(sql), search))
