import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { CellDatabase } from "./CellDatabase.ts"
import { MoveRefused } from "./MoveError.ts"
import { copiedAhead, isOf, type MovedTable } from "./MoveTables.ts"
import type { Ends } from "./Replication.ts"

/** Whether the target has the same rows as the source, by their count and a sum of hashes of all their columns. */

/** The count and the hash of one table's rows, by which both ends are compared. */
export interface Summary {
  readonly rows: string
  readonly hashes: string
}

/** A receipt that did not come along, since another organization's is there. */
interface Conflict {
  readonly environment: string
  readonly id: string
}

/** The summary of an organization's rows in a table, without conflicting receipts. */
export const summarize = (
  cell: CellDatabase,
  table: MovedTable,
  organizationId: string,
  conflicts: ReadonlyArray<Conflict> = []
): Effect.Effect<Summary, SqlError.SqlError> => {
  const { ownColumns = [] } = table
  const text =
    ownColumns.length === 0
      ? "t::text"
      : `(to_jsonb(t) - ARRAY[${ownColumns.map((name) => `'${name}'`).join(", ")}])::text`
  const isReceipt = table.name.startsWith("receipts") && conflicts.length > 0
  return Effect.map(
    cell.query<Summary>(
      `SELECT count(*)::text AS rows, COALESCE(sum(hashtextextended(${text}, 0)::numeric), 0)::text AS hashes
      FROM payments.${table.name} t WHERE ${isOf(table, organizationId)}${
        isReceipt
          ? " AND (environment, provider_event_id) NOT IN (SELECT * FROM unnest($1::text[], $2::text[]) AS c (environment, id))"
          : ""
      }`,
      isReceipt ? [conflicts.map(({ environment }) => environment), conflicts.map(({ id }) => id)] : []
    ),
    ([row]) => row ?? { rows: "0", hashes: "0" }
  )
}

/** Fails unless both summaries are the same. */
export const requireSame = (table: string, source: Summary, target: Summary): Effect.Effect<void, MoveRefused> =>
  source.rows === target.rows && source.hashes === target.hashes
    ? Effect.void
    : new MoveRefused({
        message:
          `The copy of ${table} is not the same as the original: ${target.rows} rows at the target, ${source.rows} at the source` +
          `${source.rows === target.rows ? ", with other contents" : ""}. Nothing was moved.`
      })

/** Compares what was replicated; both databases work at the same time. Returns how many rows there are. */
export const compareCopied = (
  { source, target }: Ends,
  organizationId: string,
  onTable: (table: string, rows: number) => Effect.Effect<void>
): Effect.Effect<number, SqlError.SqlError | MoveRefused> =>
  Effect.gen(function* () {
    const conflicts = yield* target.query<Conflict>(
      `SELECT environment, provider_event_id AS id FROM payments.move_conflicts WHERE organization_id = $1`,
      [organizationId]
    )
    let all = 0
    for (const table of copiedAhead) {
      const [here, there] = yield* Effect.all(
        [summarize(source, table, organizationId, conflicts), summarize(target, table, organizationId, conflicts)],
        { concurrency: 2 }
      )
      yield* requireSame(table.name, here, there)
      all += Number(here.rows)
      yield* onTable(table.name, Number(here.rows))
    }
    return all
  })
