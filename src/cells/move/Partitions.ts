import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import { isWithoutLock } from "../../storage/Database.ts"
import { dayRemovalLock, lockPatience, shortLockTimeout, storedBefore } from "../../storage/DayPartitions.ts"
import { monthRemovalLock } from "../../storage/ReceiptMonths.ts"
import { MoveRefused } from "./MoveError.ts"
import type { Ends } from "./Replication.ts"

/** The target's tables by day and by month, so that all rows of the source find one. */

interface Beginnings {
  /** The first day for which there are tables, and the first month, as dates. */
  readonly day: string
  readonly month: string
}

const beginningsOf = (cell: Ends["source"]) =>
  Effect.flatMap(
    cell.query<Beginnings>(
      `SELECT (payments.partitioned_from() AT TIME ZONE 'UTC')::date::text AS day,
        payments.month_of(payments.receipt_months_from())::text AS month`
    ),
    ([row]) => (row === undefined ? Effect.dieMessage("A SELECT without FROM answers one row") : Effect.succeed(row))
  )

/** Whether the target's days can begin earlier: only if nothing was stored before they began. */
const canBeginEarlier = ({ target }: Ends) =>
  Effect.map(
    target.query(`
      SELECT 1 FROM payments.${storedBefore.events.table} UNION ALL SELECT 1 FROM payments.${storedBefore.deliveries.table} LIMIT 1`),
    (rows) => rows.length === 0
  )

/** Refuses what the target's tables could not hold. Changes nothing. */
export const checkPartitions = (
  ends: Ends,
  organizationId: string
): Effect.Effect<void, SqlError.SqlError | MoveRefused> =>
  Effect.gen(function* () {
    const { source, target } = ends
    const [here, there] = [yield* beginningsOf(source), yield* beginningsOf(target)]
    if (here.day < there.day && !(yield* canBeginEarlier(ends))) {
      return yield* new MoveRefused({
        message: `Cell "${target.name}" stores deliveries by day since ${there.day}, "${source.name}" since ${here.day}. Wait until the target has removed what it stored before ${there.day}: its retention does that.`
      })
    }
    const [late] = yield* source.query(
      `SELECT 1 FROM payments.receipts r
      WHERE r.organization_id = $1 AND r.provider_created_at >= $2::timestamptz AND r.received_at >= $2::timestamptz LIMIT 1`,
      [organizationId, `${there.month} 00:00:00+00`]
    )
    if (late !== undefined) {
      return yield* new MoveRefused({
        message: `Cell "${target.name}" stores receipts by month since ${there.month}, and "${source.name}" has receipts of the organization since then in the table from before. They can be moved when retention has removed them from it.`
      })
    }
  })

/** Adds the days and months that the target lacks. Repeating it adds what has come since. */
export const addPartitions = (ends: Ends, organizationId: string): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    const { source, target } = ends
    const [here, there] = [yield* beginningsOf(source), yield* beginningsOf(target)]
    if (here.day < there.day) yield* beginEarlier(ends, here.day)
    const [first] = yield* source.query<{ day: string | null }>(
      `SELECT (SELECT payments.day_of(min.id)::text FROM (
        SELECT d.id FROM payments.${storedBefore.deliveries.table} d WHERE d.organization_id = $1 ORDER BY d.id LIMIT 1) min) AS day`,
      [organizationId]
    )
    const days = yield* source.query<{ day: string; needed: string | null }>(
      `SELECT day::text, needed_by::text AS needed FROM payments.days
      UNION SELECT d::date::text, NULL FROM generate_series($1::date, $2::date, interval '1 day') d ORDER BY 1`,
      [first?.day ?? here.day, here.day]
    )
    for (const { day, needed } of days) {
      yield* target.query(`SELECT payments.add_day($1::date)`, [day])
      if (needed !== null) {
        yield* target.query(`UPDATE payments.days SET needed_by = GREATEST(needed_by, $2::date) WHERE day = $1::date`, [
          day,
          needed
        ])
      }
    }
    const months = yield* source.query<{ month: string }>(`SELECT month::text FROM payments.receipt_months ORDER BY 1`)
    for (const { month } of months) yield* target.query(`SELECT payments.add_receipt_month($1::date)`, [month])
  }).pipe(Effect.retry({ while: isWithoutLock, schedule: lockPatience }))

/** Has the target's days begin on an earlier day. Nothing is stored that would have to be elsewhere. */
const beginEarlier = ({ target }: Ends, day: string) =>
  target.transaction(
    Effect.forEach(
      [
        `SET LOCAL lock_timeout = '${shortLockTimeout}'`,
        `LOCK TABLE payments.events, payments.deliveries IN ACCESS EXCLUSIVE MODE`,
        `ALTER TABLE payments.deliveries DETACH PARTITION payments.${storedBefore.deliveries.table}`,
        `DO $do$ BEGIN
          EXECUTE format($f$
            CREATE OR REPLACE FUNCTION payments.partitioned_from() RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
            $body$ SELECT timestamptz %L $body$ $f$, '${day} 00:00:00+00');
          EXECUTE format(
            'ALTER TABLE payments.deliveries ATTACH PARTITION payments.${storedBefore.deliveries.table} FOR VALUES FROM (MINVALUE) TO (%L)',
            payments.first_id_of('${day}'::date));
        END $do$`
      ],
      (statement) => target.query(statement),
      { discard: true }
    )
  )

/**
 * Keeps both ends from removing days and months while an effect runs: that is not replicated, so the ends would no longer
 * have the same rows. Removals wait for the effect, and it for one that is under way.
 */
export const keepDays = <A, E, R>(
  { source, target }: Ends,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError.SqlError | MoveRefused, R> => {
  const locks = [source, target].flatMap((cell) => [dayRemovalLock, monthRemovalLock].map((lock) => ({ cell, lock })))
  const keep = ({ cell, lock }: (typeof locks)[number]) =>
    cell.query<{ taken: boolean }>(`SELECT pg_try_advisory_lock_shared($1::bigint) AS taken`, [lock]).pipe(
      Effect.filterOrFail(
        ([row]) => row?.taken === true,
        () => new MoveRefused({ message: `Cell "${cell.name}" removes what is past its retention: try again later.` })
      ),
      Effect.retry({ while: (error) => error._tag === "MoveRefused", schedule: lockPatience })
    )
  return locks.reduceRight<Effect.Effect<A, E | SqlError.SqlError | MoveRefused, R>>(
    (inner, lock) =>
      Effect.acquireUseRelease(
        keep(lock),
        () => inner,
        () => Effect.ignore(lock.cell.query(`SELECT pg_advisory_unlock_shared($1::bigint)`, [lock.lock]))
      ),
    effect
  )
}

/**
 * Removes at the target what the source has removed since it was copied: days and months past their retention, while no
 * mover kept them. After the target has caught up, so that nothing of them can come any longer.
 */
export const removeForgotten = (
  { source, target }: Ends,
  organizationId: string,
  caughtUp: Effect.Effect<void, SqlError.SqlError | MoveRefused>
): Effect.Effect<void, SqlError.SqlError | MoveRefused> =>
  Effect.gen(function* () {
    const listed = `SELECT day::text AS first, 'day' AS kind FROM payments.days
      UNION ALL SELECT month::text, 'month' FROM payments.receipt_months`
    const here = new Set((yield* source.query<Listed>(listed)).map(({ first, kind }) => `${kind} ${first}`))
    const gone = (yield* target.query<Listed>(listed)).filter(({ first, kind }) => !here.has(`${kind} ${first}`))
    if (gone.length === 0) return
    yield* caughtUp
    for (const { first, kind } of gone) {
      if (kind === "month") {
        yield* target.query(`DELETE FROM payments.receipts_by_month WHERE organization_id = $1 AND month = $2::date`, [
          organizationId,
          first
        ])
        continue
      }
      for (const [table, type] of [
        ["events", "text"],
        ["deliveries", "uuid"]
      ]) {
        yield* target.query(
          `DELETE FROM payments.${table} WHERE organization_id = $1 AND environment IN ('sandbox', 'production')
            AND id >= payments.first_id_of($2::date)::${type} AND id < payments.first_id_of($2::date + 1)::${type}`,
          [organizationId, first]
        )
      }
    }
  })

/** A day or a month that a cell has tables for. */
interface Listed {
  readonly first: string
  readonly kind: "day" | "month"
}
