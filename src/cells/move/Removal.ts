import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import { batchSize } from "../../storage/Batches.ts"
import type { CellDatabase } from "./CellDatabase.ts"
import { isOf, type MovedTable, movedTables } from "./MoveTables.ts"

/** Removes an organization from a cell's database, in small batches. */

/** The pause between batches: others' work has priority. */
const pause = "5 millis"

/** The columns of a table's primary key. */
const keyOf = (cell: CellDatabase, table: string) =>
  Effect.map(
    cell.query<{ name: string }>(
      `SELECT a.attname AS name FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
      WHERE i.indrelid = $1::regclass AND i.indisprimary`,
      [`payments.${table}`]
    ),
    (rows) => rows.map(({ name }) => name)
  )

const removeRows = (cell: CellDatabase, table: MovedTable, organizationId: string) =>
  Effect.gen(function* () {
    const key = (yield* keyOf(cell, table.name)).join(", ")
    const statement = `
      WITH chosen AS MATERIALIZED (
        SELECT ${key} FROM payments.${table.name} t WHERE ${isOf(table, organizationId)} LIMIT ${batchSize}
      ), removed AS (
        DELETE FROM payments.${table.name} WHERE (${key}) IN (SELECT ${key} FROM chosen) RETURNING 1
      ) SELECT count(*)::int AS removed FROM removed`
    for (;;) {
      const [row] = yield* cell.query<{ removed: number }>(statement)
      if (row === undefined || row.removed < batchSize) return
      yield* Effect.sleep(pause)
    }
  })

/** The organization's people with what is theirs, at once: without memberships, nobody would know whose they are. */
const removePeople = (cell: CellDatabase, organizationId: string) =>
  cell.transaction(
    Effect.gen(function* () {
      const people = yield* cell.query<{ id: string; email: string }>(
        `SELECT p.id, p.email FROM payments.memberships m JOIN payments.people p ON p.id = m.person_id
        WHERE m.organization_id = $1`,
        [organizationId]
      )
      const ids = people.map(({ id }) => id)
      yield* cell.query(`DELETE FROM payments.login_tokens WHERE email = ANY ($1::text[])`, [
        people.map(({ email }) => email)
      ])
      yield* cell.query(`DELETE FROM payments.sessions WHERE person_id = ANY ($1::uuid[])`, [ids])
      yield* cell.query(`DELETE FROM payments.memberships WHERE organization_id = $1`, [organizationId])
      yield* cell.query(`DELETE FROM payments.people WHERE id = ANY ($1::uuid[])`, [ids])
    })
  )

/** What must go first, so that nobody is let in any longer, and no notification is judged by what is left. */
const doors = new Set(["invitations", "provider_accounts"])

/** How long requests may still come in with a key that is gone: processes remember busy keys for half of this. */
const keysRemembered = "1 second"

/**
 * Removes all rows of an organization and its people: its doors first, then the rest, children before parents. Repeating
 * it goes on. The tenant's versions stay, so that none is used twice.
 */
export const removeOrganization = (
  cell: CellDatabase,
  organizationId: string,
  onTable: (table: string) => Effect.Effect<void> = () => Effect.void
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    // Along the primary keys: a hash of a batch would be compared with all that there is
    yield* cell.query(
      `SELECT set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false)`
    )
    const tables = movedTables.filter(({ of }) => of === "organization")
    for (const table of tables.filter(({ name }) => name === "api_keys")) yield* removeRows(cell, table, organizationId)
    yield* Effect.sleep(keysRemembered)
    for (const table of tables.filter(({ name }) => doors.has(name))) yield* removeRows(cell, table, organizationId)
    yield* removePeople(cell, organizationId)
    // Workers must not meet what they can't send
    const queue = tables.find(({ name }) => name === "delivery_queue")
    if (queue !== undefined) yield* removeRows(cell, queue, organizationId)
    for (const table of tables.toReversed()) {
      yield* onTable(table.name)
      yield* removeRows(cell, table, organizationId)
    }
    yield* cell.query(`DELETE FROM payments.move_conflicts WHERE organization_id = $1`, [organizationId])
  })
