import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Effect } from "effect"

/**
 * Rows that one statement removes at most: few enough that nobody waits for its locks. Such statements name rows by
 * primary key, never by `ctid`, which in a partitioned table is unique only within a partition.
 */
export const batchSize = 1000

/** Removes batches until one is not full; yields between them. Returns the total. */
export const inBatches = <E, R>(remove: Effect.Effect<number, E, R>): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    let removed = 0
    while (true) {
      const batch = yield* remove
      removed += batch
      if (batch < batchSize) {
        return removed
      }
      yield* Effect.yieldNow()
    }
  })

export interface OldRows {
  readonly table: string
  readonly key: ReadonlyArray<string>
  /** The condition on the row `r`. */
  readonly old: Statement.Fragment
  /** An indexed column that leads to these rows. */
  readonly by: string
}

export const removeOld = (
  sql: SqlClient.SqlClient,
  { by, key, old, table }: OldRows
): Effect.Effect<void, SqlError.SqlError> => {
  const rows = sql.literal(`payments.${table}`)
  const columns = (row: string) => sql.literal(key.map((column) => `${row}.${column}`).join(", "))
  const remove = sql`
    WITH old AS MATERIALIZED (
      SELECT ${columns("r")} FROM ${rows} r WHERE ${old}
      ORDER BY ${sql.literal(`r.${by}`)} LIMIT ${batchSize} FOR UPDATE OF r SKIP LOCKED
    )
    DELETE FROM ${rows} r USING old WHERE (${columns("r")}) = (${columns("old")}) RETURNING 1`
  return Effect.asVoid(inBatches(Effect.map(remove, (removed) => removed.length)))
}
