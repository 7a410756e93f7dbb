import type { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { CellDatabase } from "./CellDatabase.ts"
import { requireSame, summarize } from "./Comparison.ts"
import { bringCountsInLine, countPositions } from "./Counts.ts"
import type { MoveRefused } from "./MoveError.ts"
import type { Move } from "./MoveState.ts"
import { copiedLast, isCounts, isOf, type MovedTable } from "./MoveTables.ts"
import type { Ends } from "./Replication.ts"

/**
 * The copy that is made behind the fence, in one transaction at each end: the organization itself and everything that belongs
 * to it except its history. Until then the target does not know the organization; afterwards it has all of it.
 */

/** How many rows are copied at a time. */
const batch = 1000

/** The columns that can be written. */
const columnsOf = (cell: CellDatabase, { name, ownColumns = [] }: MovedTable) =>
  Effect.map(
    cell.query<{ name: string }>(
      `SELECT quote_ident(attname) AS name FROM pg_attribute
      WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attname <> ALL ($2::text[])
      ORDER BY attnum`,
      [`payments.${name}`, ownColumns]
    ),
    (rows) => rows.map(({ name: column }) => column).join(", ")
  )

/** Copies the rows of a table, as text: no value passes through the types of this program. */
const copyTable = ({ source, target }: Ends, table: MovedTable, organizationId: string) =>
  Effect.gen(function* () {
    const columns = yield* columnsOf(source, table)
    // Of the counts, only what is settled is taken over
    const settled = table.name.endsWith("_counts") ? " AND t.pass = 0" : ""
    yield* source.query(
      `DECLARE rows NO SCROLL CURSOR FOR
      SELECT to_json(t)::text AS row FROM payments.${table.name} t WHERE ${isOf(table, organizationId)}${settled}`
    )
    for (;;) {
      const rows = yield* source.query<{ row: string }>(`FETCH ${batch} FROM rows`)
      if (rows.length > 0) {
        yield* target.query(
          `INSERT INTO payments.${table.name} (${columns})
          SELECT ${columns} FROM json_populate_recordset(NULL::payments.${table.name}, $1::json)`,
          [`[${rows.map(({ row }) => row).join(",")}]`]
        )
      }
      if (rows.length < batch) break
    }
    yield* source.query("CLOSE rows")
  })

/** Copies everything that is not replicated, and compares it. All of it is there when this has succeeded, or nothing. */
export const copyLast = (
  ends: Ends,
  move: Move
): Effect.Effect<void, SqlError.SqlError | MoveRefused, SqlClient.SqlClient> => {
  const { source, target } = ends
  const { organizationId } = move
  return source.transaction(
    target.transaction(
      Effect.gen(function* () {
        const there = yield* countPositions(target, "lock")
        const here = yield* countPositions(source)
        // It may have been here before: what was left of it then is no longer true
        for (const table of ["moved_organizations", "moved_accounts", "moved_credentials"]) {
          yield* target.query(`DELETE FROM payments.${table} WHERE organization_id = $1`, [organizationId])
        }
        for (const table of copiedLast.filter(isCounts)) {
          yield* target.query(`DELETE FROM payments.${table.name} WHERE organization_id = $1`, [organizationId])
        }
        for (const table of copiedLast) yield* copyTable(ends, table, organizationId)
        for (const table of copiedLast.filter((one) => !isCounts(one))) {
          yield* requireSame(
            table.name,
            yield* summarize(source, table, { organizationId }),
            yield* summarize(target, table, { organizationId })
          )
        }
        yield* bringCountsInLine(target, organizationId, here, there)
        // Its fence stands from the beginning
        yield* target.query(
          `UPDATE payments.moves SET phase = 'moved', changed_at = now() WHERE organization_id = $1`,
          [organizationId]
        )
      })
    ),
    "snapshot"
  )
}

/** Copies the images that the organization has uploaded or shows, if the databases have any: they are the same for all. */
export const copyImages = ({ source, target }: Ends, organizationId: string): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    const images = yield* source.query<{ sha256: Buffer }>(
      `SELECT i.sha256 FROM payments.product_images i WHERE encode(i.sha256, 'hex') IN (
        SELECT split_part(u.file, '.', 1) FROM payments.product_image_uploads u WHERE u.organization_id = $1
        UNION SELECT split_part(p.image_file, '.', 1) FROM payments.checkout_pages p WHERE p.organization_id = $1)`,
      [organizationId]
    )
    for (const { sha256 } of images) {
      const [known] = yield* target.query(`SELECT 1 FROM payments.product_images WHERE sha256 = $1`, [sha256])
      if (known !== undefined) continue
      const [image] = yield* source.query<{ format: string; bytes: Buffer; created_at: string }>(
        `SELECT format, bytes, created_at::text FROM payments.product_images WHERE sha256 = $1`,
        [sha256]
      )
      // Removed just now
      if (image === undefined) continue
      yield* target.query(
        `INSERT INTO payments.product_images (sha256, format, bytes, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING`,
        [sha256, image.format, image.bytes, image.created_at]
      )
    }
  })
