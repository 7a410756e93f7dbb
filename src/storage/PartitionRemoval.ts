import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { isUnavailable } from "./Database.ts"

/** Which tables to remove. The SQL may not have parameters. */
export interface PartitionRemoval {
  /** The number of the advisory lock: one process removes at a time. */
  readonly lock: number
  /** The statement that strikes what is past its retention off the list of what there is. */
  readonly forget: string
  /** A condition on `c`, a table in `pg_class`, that is true for those that are on no list. */
  readonly isForgotten: string
}

/**
 * Removes tables of what is past its retention: takes them from their partitioned tables without blocking anybody, and
 * drops them. A table that a long transaction reads stays until a later round. One process at a time; the others return
 * at once. Returns how many tables were dropped.
 */
export const removePartitions = ({
  forget,
  isForgotten,
  lock
}: PartitionRemoval): Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const connection = yield* sql.reserve
    const run = (statement: string) => connection.execute(statement, [], undefined)
    const [row] = yield* run(`SELECT pg_try_advisory_lock(${lock}) AS taken`)
    if (row?.taken !== true) return 0
    // A session that ends releases it as well
    yield* Effect.addFinalizer(() => Effect.ignore(run(`SELECT pg_advisory_unlock(${lock})`)))
    yield* run(forget)
    // Includes what an earlier round has left
    const left = yield* run(`
      SELECT c.relname AS name, p.relname AS parent, i.inhdetachpending AS pending
      FROM pg_class c
      LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
      LEFT JOIN pg_class p ON p.oid = i.inhparent
      WHERE c.relnamespace = 'payments'::regnamespace AND c.relkind = 'r' AND ${isForgotten}
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
