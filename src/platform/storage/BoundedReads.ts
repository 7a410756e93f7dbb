import type { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"
import { transaction } from "./Database.ts"

/** Time limit of the search for a page, in milliseconds; beyond it the response is 503. */
export const searchTimeout = "3000"

/**
 * Makes the rest of the transaction scan along an index and stop at its limit. Statistics do not know recent rows yet,
 * so the planner underestimates a range of them and would read and sort them all.
 */
export const alongIndex = (sql: SqlClient.SqlClient) =>
  sql`SELECT set_config('enable_sort', 'off', true), set_config('enable_seqscan', 'off', true)`

/** Reads a page in a transaction that may not search for longer than `searchTimeout`. */
export const timedRead =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(search: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    sql`SET LOCAL statement_timeout = ${sql.literal(searchTimeout)}`.pipe(Effect.zipRight(search), transaction(sql))

/** Like `timedRead`, and scans along an index: see `alongIndex`. */
export const boundedRead =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(search: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    timedRead(sql)(Effect.zipRight(alongIndex(sql), search))
