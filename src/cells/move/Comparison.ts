import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { CellDatabase } from "./CellDatabase.ts"
import { MoveRefused } from "./MoveError.ts"
import { isOf, type MovedTable } from "./MoveTables.ts"

/** Whether the target has the same rows as the source, by their count and a sum of hashes of all their columns. */

/** The count and the hash of rows, by which both ends are compared. */
export interface Summary {
  readonly rows: string
  readonly hashes: string
}

/** A receipt that did not come along, since another organization's is there. */
export interface Conflict {
  readonly environment: string
  readonly id: string
}

/** The receipts that did not come along. */
export const conflictsOf = (target: CellDatabase, organizationId: string) =>
  target.query<Conflict>(
    `SELECT environment, provider_event_id AS id FROM payments.move_conflicts WHERE organization_id = $1`,
    [organizationId]
  )

/** Which of an organization's rows are summarized. */
export interface Which {
  readonly organizationId: string
  /** Those that did not come along are left out. */
  readonly conflicts?: ReadonlyArray<Conflict>
  /** A further condition on `t`, in SQL. */
  readonly where?: string
}

/** The rows with their hashes, as a part of a statement, and its parameters. */
export const hashed = (
  table: MovedTable,
  { conflicts = [], organizationId, where }: Which,
  columns: ReadonlyArray<string> = []
): readonly [string, ReadonlyArray<unknown>] => {
  const { ownColumns = [] } = table
  const text =
    ownColumns.length === 0
      ? "t::text"
      : `(to_jsonb(t) - ARRAY[${ownColumns.map((name) => `'${name}'`).join(", ")}])::text`
  const leavesOut = table.name.startsWith("receipts") && conflicts.length > 0
  return [
    `SELECT ${[...columns, `hashtextextended(${text}, 0)::numeric AS hash`].join(", ")}
    FROM payments.${table.name} t WHERE ${isOf(table, organizationId)}${where === undefined ? "" : ` AND (${where})`}${
      leavesOut
        ? " AND (environment, provider_event_id) NOT IN (SELECT * FROM unnest($1::text[], $2::text[]) AS c (environment, id))"
        : ""
    }`,
    leavesOut ? [conflicts.map(({ environment }) => environment), conflicts.map(({ id }) => id)] : []
  ]
}

/** The columns of a summary, of rows that are `hashed`. */
export const summaryColumns = "count(*)::text AS rows, COALESCE(sum(hash), 0)::text AS hashes"

/** The summary of an organization's rows in a table, without conflicting receipts. */
export const summarize = (
  cell: CellDatabase,
  table: MovedTable,
  which: Which
): Effect.Effect<Summary, SqlError.SqlError> => {
  const [rows, values] = hashed(table, which)
  return Effect.map(
    cell.query<Summary>(`SELECT ${summaryColumns} FROM (${rows}) AS r`, values),
    ([row]) => row ?? { rows: "0", hashes: "0" }
  )
}

/** Whether both summaries are of the same rows. */
export const isSame = (source: Summary, target: Summary): boolean =>
  source.rows === target.rows && source.hashes === target.hashes

/** Fails unless both summaries are the same. */
export const requireSame = (table: string, source: Summary, target: Summary): Effect.Effect<void, MoveRefused> =>
  isSame(source, target)
    ? Effect.void
    : new MoveRefused({
        message:
          `The copy of ${table} is not the same as the original: ${target.rows} rows at the target, ${source.rows} at the source` +
          `${source.rows === target.rows ? ", with other contents" : ""}. Nothing was moved.`
      })
