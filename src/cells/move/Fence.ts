import { createHash } from "node:crypto"
import type { SqlError } from "@effect/sql"
import { Duration, Effect, Schedule } from "effect"
import { isWithoutLock } from "../../storage/Database.ts"
import { shortLockTimeout } from "../../storage/DayPartitions.ts"
import type { CellDatabase } from "./CellDatabase.ts"
import { copiedAhead, type Fencing, movedTables, uuidLiteral } from "./MoveTables.ts"

/**
 * The fence of an organization that moves: triggers that refuse its writes, in the database, so that no process can miss
 * it. They exist only during a move, and for a day after it, for statements that were prepared before. They are created
 * before it begins, and look how far the move is: see `payments.fence_moving()` and `setPhase`. Other organizations' rows
 * pay for a comparison of their id.
 */

/** How long after a move the triggers stay at the source. No process holds on to what it has read for as long. */
const staysFor = "1 day"

/** Locks of busy tables are tried for briefly, and often. */
const patience = Schedule.spaced("200 millis").pipe(Schedule.upTo(Duration.minutes(5)))

interface Fenced {
  readonly id: string
  readonly role: "leaving" | "arriving" | "gone"
}

interface Trigger {
  readonly table: string
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

const prefix = "payments_move_"

const trigger = (table: string, event: string, when: string, call: string, replica = false): Trigger => {
  const body = `BEFORE ${event} ON payments.${table} FOR EACH ROW ${when} EXECUTE FUNCTION ${call}`
  const name = `${prefix}${createHash("sha256").update(body).digest("hex").slice(0, 16)}`
  return {
    table,
    name,
    statements: [
      `CREATE TRIGGER ${name} ${body}`,
      ...(replica ? [`ALTER TABLE payments.${table} ENABLE REPLICA TRIGGER ${name}`] : [])
    ]
  }
}

const argumentsOf = (fencing: Fencing): ReadonlyArray<string> =>
  typeof fencing === "string" ? [fencing] : ["uses", ...fencing.skipUsesOf]

/** Note which hours of the history change while the organization is copied. */
const notesOf = (id: string): ReadonlyArray<Trigger> =>
  copiedAhead.flatMap(({ name, timed }) =>
    timed === undefined
      ? []
      : ["INSERT", "UPDATE", "DELETE"].map((event) => {
          const rows = event === "INSERT" ? ["NEW"] : event === "DELETE" ? ["OLD"] : ["OLD", "NEW"]
          const when = rows.map((row) => `${row}.organization_id = ${uuidLiteral(id)}`).join(" OR ")
          return trigger(
            name,
            event,
            `WHEN (${when})`,
            `payments.note_moving_change('${id}', '${name}', '${timed.column}')`
          )
        })
  )

const triggersOf = ({ id, role }: Fenced): ReadonlyArray<Trigger> => {
  const fences = movedTables.flatMap(({ by, fence, name, of }) =>
    (["insert", "update", "delete"] as const).flatMap((event) => {
      const fencing = fence[event]
      if (fencing === undefined) return []
      // Whose person it is, the function finds out
      const when = of === "person" ? "" : `WHEN (${event === "delete" ? "OLD" : "NEW"}.${by} = ${uuidLiteral(id)})`
      const args = [id, ...argumentsOf(fencing)].map((text) => `'${text}'`)
      return [trigger(name, event.toUpperCase(), when, `payments.fence_moving(${args.join(", ")})`)]
    })
  )
  const admits = ["receipts", "receipts_by_month"].map((name) =>
    trigger(name, "INSERT", `WHEN (NEW.organization_id = ${uuidLiteral(id)})`, "payments.admit_moved_receipt()", true)
  )
  return [...fences, ...(role === "arriving" ? admits : role === "leaving" ? notesOf(id) : [])]
}

/** Creates and drops triggers as the moves in the cell's database require. A table at a time; repeating it does nothing. */
export const renewFence = (cell: CellDatabase): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    const fenced = yield* cell.query<Fenced>(`
      SELECT organization_id::text AS id, role FROM payments.moves
      UNION ALL SELECT organization_id::text, 'gone' FROM payments.moved_organizations o
      WHERE moved_at > now() - interval '${staysFor}'
        AND NOT EXISTS (SELECT 1 FROM payments.moves m WHERE m.organization_id = o.organization_id)`)
    const triggers = fenced.flatMap(triggersOf)
    const existing = yield* cell.query<{ table: string; name: string }>(`
      SELECT c.relname AS table, g.tgname AS name FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
      WHERE c.relnamespace = 'payments'::regnamespace AND g.tgparentid = 0 AND g.tgname LIKE '${prefix.replaceAll("_", "\\_")}%'`)
    // Names are hashes of definitions, which name the table
    const names = new Set(triggers.map(({ name }) => name))
    const known = new Set(existing.map(({ name }) => name))
    for (const { name: table } of movedTables) {
      const statements = [
        // Those to come first, in the same transaction: no row is without a fence in between
        ...triggers.filter((one) => one.table === table && !known.has(one.name)).flatMap((one) => one.statements),
        ...existing
          .filter((one) => one.table === table && !names.has(one.name))
          .map(({ name }) => `DROP TRIGGER ${name} ON payments.${table}`)
      ]
      if (statements.length === 0) continue
      yield* cell
        .transaction(
          Effect.forEach(
            [`SET LOCAL lock_timeout = '${shortLockTimeout}'`, ...statements],
            (statement) => cell.query(statement),
            { discard: true }
          )
        )
        .pipe(Effect.retry({ while: isWithoutLock, schedule: patience }))
    }
  })
