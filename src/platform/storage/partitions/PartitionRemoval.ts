import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { isUnavailable } from "../Database.ts"

/** The tables to remove. The SQL must have no parameters. */
export interface PartitionRemoval {
  /** SQL: the key of the advisory lock. One process removes at a time. */
  readonly lock: string
  /** The statement that deletes expired entries from the list of partitions. */
  readonly forget: string
  /** A condition on `c`, a table in `pg_class`: true for tables that are on no list. */
  readonly isForgotten: string
}

/**
 * Removes expired partitions: detaches them from their partitioned tables without blocking other statements, and drops
 * them. A table that a long transaction reads is left for a later run. One process at a time; the others return at
 * once. Returns how many tables were dropped.
 */
export const removePartitions = ({
  forget,
  isForgotten,
  lock
}: PartitionRemoval): Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const connection = yield* sql.reserve
    const run = (statement: string) => connection.execute(sql.unsafe(statement).compile()[0], [], undefined)
    const [row] = yield* run(`SELECT pg_try_advisory_lock(${lock}) AS taken`)
    if (row?.taken !== true) return 0
    // The end of the session releases it as well
    yield* Effect.addFinalizer(() => Effect.ignore(run(`SELECT pg_advisory_unlock(${lock})`)))
    yield* run(forget)
    // Includes tables that an earlier run left behind
    const left = yield* run(`
      SELECT c.relname AS name, p.relname AS parent, i.inhdetachpending AS pending
      FROM pg_class c
      LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
      LEFT JOIN pg_class p ON p.oid = i.inhparent
      WHERE c.relnamespace = '"payments"'::regnamespace AND c.relkind = 'r' AND ${isForgotten}
      ORDER BY c.relname`)
    let removed = 0
    for (const { name, parent, pending } of left) {
      const how = pending ? "FINALIZE" : "CONCURRENTLY"
      const detached =
        parent === null ? Effect.void : run(`ALTER TABLE payments.${parent} DETACH PARTITION payments.${name} ${how}`)
      const done = yield* Effect.zipRight(detached, run(`DROP TABLE payments.${name}`)).pipe(
        Effect.as(true),
        Effect.catchIf(isUnavailable, (cause) =>
          Effect.as(
            Effect.logInfo(
              `The table ${name} is past its retention but still in use; the next round removes it`,
              cause
            ),
            false
          )
        )
      )
      if (!done) break
      removed += 1
    }
    return removed
  }).pipe(Effect.scoped)
