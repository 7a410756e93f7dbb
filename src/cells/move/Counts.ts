import type { Statement } from "@effect/sql"
import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect, Schedule } from "effect"
import { makeCounting } from "../../deliveries/statistics/Counting.ts"
import { makeCountStatements } from "../../deliveries/statistics/CountStatements.ts"
import { slotMillis, slotOf } from "../../deliveries/statistics/Slots.ts"
import type { CellDatabase } from "./CellDatabase.ts"
import { MoveRefused } from "./MoveError.ts"
import { uuidLiteral } from "./MoveTables.ts"
import type { Ends } from "./Replication.ts"

/**
 * The statistics of an organization that moves. What the source has settled is copied; what the target's counts have gone
 * past since then is counted there for this organization alone, by the same statements. So nothing is counted twice, and
 * nothing is missed.
 */

/** How far a cell's two counts are, in Unix milliseconds. */
export interface CountPositions {
  readonly first: { readonly since: number; readonly until: number }
  readonly second: { readonly since: number; readonly until: number }
}

/** Reads the positions; `lock` keeps the cell's own counting from going on until the transaction ends. */
export const countPositions = (
  cell: CellDatabase,
  lock: "lock" | "look" = "look"
): Effect.Effect<CountPositions, SqlError.SqlError> =>
  Effect.map(
    cell.query<{ pass: number; since: Date; until: Date }>(
      `SELECT pass, since, until FROM payments.count_passes ORDER BY pass ${lock === "lock" ? "FOR UPDATE" : ""}`
    ),
    (rows) => {
      const of = (pass: number) => {
        const row = rows.find((one) => one.pass === pass)
        return { since: row?.since.getTime() ?? 0, until: row?.until.getTime() ?? 0 }
      }
      return { first: of(1), second: of(2) }
    }
  )

/** Has the target's counts go on, if none of its workers does, until they have settled what the source has. */
export const awaitCounts = ({
  source,
  target
}: Ends): Effect.Effect<void, SqlError.SqlError | MoveRefused, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const { run } = yield* makeCounting
    const isThere = Effect.zipWith(
      countPositions(source),
      countPositions(target),
      (here, there) => slotOf(there.second.until) >= slotOf(here.second.until)
    )
    if (yield* isThere) return
    yield* run
    yield* isThere.pipe(
      Effect.filterOrFail(
        (there) => there,
        () =>
          new MoveRefused({
            message: `The statistics of cell "${target.name}" are behind those of "${source.name}", and do not catch up: compare the clocks of both databases.`
          })
      ),
      Effect.tapError(() => run),
      Effect.retry({
        while: (error) => error._tag === "MoveRefused",
        schedule: Schedule.spaced("1 second").pipe(Schedule.upTo(Duration.seconds(30)))
      })
    )
  })

/**
 * Counts for the organization at the target what the source has not settled and the target has gone past. In the
 * transaction that makes its workspaces known, in which the target's positions are locked.
 */
export const bringCountsInLine = (
  target: CellDatabase,
  organizationId: string,
  from: CountPositions,
  to: CountPositions
): Effect.Effect<void, SqlError.SqlError | MoveRefused, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const statements = makeCountStatements(
      sql,
      sql.literal(`(SELECT * FROM payments.workspaces WHERE organization_id = ${uuidLiteral(organizationId)})`)
    )
    const run = (statement: Statement.Statement<unknown>) => target.query(...statement.compile())
    const settledThere = slotOf(to.second.until)
    const settledHere = slotOf(from.second.until)
    if (settledThere < settledHere) {
      return yield* new MoveRefused({
        message: `The statistics of cell "${target.name}" are behind those of the source: run the same command again.`
      })
    }
    yield* target.query(`SELECT set_config('enable_sort', 'off', true), set_config('enable_seqscan', 'off', true)`)
    const count = (pass: 1 | 2, slot: number, begin: number, until: number) =>
      Effect.zipRight(
        run(statements.payments(pass, { slot, from: begin, until })),
        run(statements.deliveries(pass, { slot, from: begin, until }))
      )
    for (let slot = settledHere; slot < settledThere; slot += slotMillis) {
      yield* count(2, slot, slot, slot + slotMillis)
      yield* run(statements.settlePayments(slot))
      yield* run(statements.settleDeliveries(slot))
    }
    if (to.second.until > settledThere) yield* count(2, settledThere, settledThere, to.second.until)
    const first = Math.max(settledThere, to.first.since)
    for (let begin = first; begin < to.first.until; begin = slotOf(begin) + slotMillis) {
      yield* count(1, slotOf(begin), begin, Math.min(slotOf(begin) + slotMillis, to.first.until))
    }
    yield* target.query(`SELECT set_config('enable_sort', 'on', true), set_config('enable_seqscan', 'on', true)`)
  })
