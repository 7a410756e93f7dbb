import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { CellDatabase } from "./CellDatabase.ts"
import {
  conflictsOf,
  hashed,
  isSame,
  requireSame,
  type Summary,
  summarize,
  summaryColumns,
  type Which
} from "./Comparison.ts"
import {
  byDay,
  byStatement,
  dayMillis,
  type Hours,
  hourMillis,
  hourOf,
  isIn,
  noHours,
  openSpans,
  restOf
} from "./Hours.ts"
import type { MoveRefused } from "./MoveError.ts"
import { betweenWrites, type Move } from "./MoveState.ts"
import { copiedAhead, isOf, type MovedTable, type Timed } from "./MoveTables.ts"
import { awaitCaughtUp, type Ends } from "./Replication.ts"

/**
 * Compares what was replicated, most of it while the organization works, so that its writes are not refused for as long as
 * its history takes to read.
 *
 * Triggers at the source note each hour in which a row is written, changed or removed: `payments.note_moving_change()`. The
 * mover forgets what was noted while no write is under way, waits until the target has all from before, and then compares
 * both ends hour by hour. An hour that is not noted behind the fence has changed at neither end since: if it was the same
 * then, it is now. Behind the fence all else is compared: noted hours, and rows of no hour that was compared. No clock
 * matters for this, and nothing of it outlives the process: whoever goes on with a killed move compares anew.
 */

/** The hours of each table that were compared. */
export type ComparedHours = Map<string, Hours>

type TimedTable = MovedTable & { readonly timed: Timed }

const timedTables = copiedAhead.flatMap(
  (table): ReadonlyArray<TimedTable> => (table.timed === undefined ? [] : [{ ...table, timed: table.timed }])
)

/** An hour in which something has changed: `-Infinity` if its time is not known. */
interface Change {
  readonly table: string
  readonly hour: number
}

const changeColumns = `table_name AS "table", (extract(epoch FROM hour) * 1000)::float8 AS hour`

/** What has changed, which is then forgotten. */
const takeChanges = (source: CellDatabase, organizationId: string) =>
  betweenWrites<Change>(
    source,
    organizationId,
    `DELETE FROM payments.move_changed_hours WHERE organization_id = $1 RETURNING ${changeColumns}`,
    [organizationId]
  )

const readChanges = (source: CellDatabase, organizationId: string) =>
  source.query<Change>(`SELECT DISTINCT ${changeColumns} FROM payments.move_changed_hours WHERE organization_id = $1`, [
    organizationId
  ])

const reopen = (compared: ComparedHours, changes: ReadonlyArray<Change>) => {
  for (const { hour, table } of changes) {
    const hours = compared.get(table)
    if (hours === undefined) continue
    if (hour === Number.NEGATIVE_INFINITY) compared.set(table, noHours())
    else if (hour >= hours.span.from && hour < hours.span.until) hours.open.add(hour)
  }
}

/** From the day of the first row until the end of today, all open. */
const allHours = (source: CellDatabase, { name, timed, ...table }: TimedTable, organizationId: string) =>
  Effect.map(
    source.query<{ first: number | null; now: number }>(
      `SELECT (SELECT min(f.hour) FROM ${
        timed.after === "environment" ? "unnest(ARRAY['sandbox', 'production'])" : "(VALUES (''))"
      } AS e (environment) CROSS JOIN LATERAL (
        SELECT ${hourOf(timed)} FROM payments.${name} t WHERE ${isOf({ name, ...table }, organizationId)}${
          timed.after === "environment" ? " AND t.environment = e.environment" : ""
        } ORDER BY t.${timed.column} LIMIT 1
      ) AS f WHERE f.hour > '-Infinity') AS first,
      (extract(epoch FROM payments.hour_of(now())) * 1000)::float8 AS now`
    ),
    ([row]): Hours => {
      if (row === undefined || row.first === null) return noHours()
      const beginOf = (millis: number) => millis - (millis % dayMillis)
      const span = { from: beginOf(row.first), until: beginOf(row.now) + dayMillis }
      const open = new Set<number>()
      for (let hour = span.from; hour < span.until; hour += hourMillis) open.add(hour)
      return { span, rows: new Map(), open }
    }
  )

const summarizeHours = (cell: CellDatabase, table: TimedTable, which: Which) => {
  const [rows, values] = hashed(table, which, [hourOf(table.timed)])
  // OFFSET: hashes are sorted by their hour, and not whole rows
  return Effect.map(
    cell.query<Summary & { hour: number }>(
      `SELECT hour, ${summaryColumns} FROM (${rows} OFFSET 0) AS r GROUP BY hour`,
      values
    ),
    (found) => new Map(found.map(({ hour, ...summary }) => [hour, summary]))
  )
}

const none: Summary = { rows: "0", hashes: "0" }

/** Compares a table's open hours. Those that change just now stay open. Returns how many rows were read. */
const compareOpen = (ends: Ends, table: TimedTable, hours: Hours, which: Which) =>
  Effect.gen(function* () {
    const { source, target } = ends
    let read = 0
    for (const spans of byStatement(table.timed, byDay(openSpans(hours)))) {
      const statement = { ...which, where: isIn(table.timed, spans) }
      const [here, there] = yield* Effect.all(
        [summarizeHours(source, table, statement), summarizeHours(target, table, statement)],
        { concurrency: 2 }
      )
      const differing = new Set<number>()
      for (const hour of new Set([...here.keys(), ...there.keys()])) {
        const [one, other] = [here.get(hour) ?? none, there.get(hour) ?? none]
        read += Number(one.rows)
        hours.rows.set(hour, Number(one.rows))
        if (!isSame(one, other)) differing.add(hour)
      }
      if (differing.size > 0) {
        // Whatever one end has and the other does not was noted when it was written
        const changed = new Set(
          (yield* readChanges(source, which.organizationId))
            .filter((change) => change.table === table.name)
            .map(({ hour }) => hour)
        )
        for (const hour of differing) {
          if (!changed.has(hour)) yield* requireSame(table.name, here.get(hour) ?? none, there.get(hour) ?? none)
        }
      }
      for (const { from, until } of spans) {
        for (let hour = from; hour < until; hour += hourMillis) {
          if (!here.has(hour)) hours.rows.delete(hour)
          if (!differing.has(hour)) hours.open.delete(hour)
        }
      }
    }
    return read
  })

/** As many rows are compared behind the fence without being noticed. */
const few = 20_000

/** Has both ends find rows by index, however little they know of new tables. */
const alongIndexes = ({ source, target }: Ends) => {
  const set = (value: "on" | "off") =>
    Effect.all(
      [source, target].map((cell) => cell.query(`SELECT set_config('enable_seqscan', $1, false)`, [value])),
      { concurrency: 2, discard: true }
    )
  return <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      set("off"),
      () => effect,
      () => Effect.ignore(set("on"))
    )
}

/** Compares all hours while the organization works, and those that change meanwhile again, while that becomes less. */
export const compareAhead = (
  ends: Ends,
  move: Move,
  onTable: (table: string, rows: number) => Effect.Effect<void>
): Effect.Effect<ComparedHours, SqlError.SqlError | MoveRefused> =>
  Effect.gen(function* () {
    const { source, target } = ends
    const { organizationId } = move
    const compared: ComparedHours = new Map()
    let before = Number.POSITIVE_INFINITY
    for (;;) {
      reopen(compared, yield* takeChanges(source, organizationId))
      yield* awaitCaughtUp(ends, move)
      const conflicts = yield* conflictsOf(target, organizationId)
      let all = 0
      for (const table of timedTables) {
        const hours = compared.get(table.name) ?? (yield* allHours(source, table, organizationId))
        compared.set(table.name, hours)
        const rows = yield* compareOpen(ends, table, hours, { organizationId, conflicts })
        // Rows of an unknown time among those of known ones: hour by hour they can't be told apart
        if (hours.rows.has(Number.NEGATIVE_INFINITY)) compared.set(table.name, noHours())
        yield* onTable(table.name, rows)
        all += rows
      }
      if (all <= few || all > before / 2) return compared
      before = all
    }
  }).pipe(alongIndexes(ends))

/** Compares behind the fence what was not, or has changed since. Returns how many rows there are in all. */
export const compareRest = (
  ends: Ends,
  organizationId: string,
  compared: ComparedHours,
  onTable: (table: string, rows: number) => Effect.Effect<void>
): Effect.Effect<number, SqlError.SqlError | MoveRefused> =>
  Effect.gen(function* () {
    const { source, target } = ends
    const conflicts = yield* conflictsOf(target, organizationId)
    reopen(compared, yield* readChanges(source, organizationId))
    let all = 0
    for (const table of copiedAhead) {
      const { timed } = table
      const hours = compared.get(table.name)
      const conditions =
        timed === undefined || hours === undefined
          ? [undefined]
          : byStatement(timed, restOf(hours)).map((spans) => isIn(timed, spans))
      let rows = 0
      for (const where of conditions) {
        const which = { organizationId, conflicts, ...(where === undefined ? {} : { where }) }
        const [here, there] = yield* Effect.all([summarize(source, table, which), summarize(target, table, which)], {
          concurrency: 2
        })
        yield* requireSame(table.name, here, there)
        rows += Number(here.rows)
      }
      yield* onTable(table.name, rows)
      all += rows
      for (const [hour, known] of hours?.rows ?? []) if (hours?.open.has(hour) === false) all += known
    }
    return all
  }).pipe(alongIndexes(ends))
