import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Duration, Effect } from "effect"
import type { DeliveryId } from "../../kit/Ids.ts"
import { transaction } from "../../storage/Database.ts"
import type { RunStatement } from "../../storage/Statements.ts"
import { arrayOf, type ClaimedDelivery } from "./Claim.ts"
import type { FinishedAttempt } from "./FinishedAttempt.ts"
import type { Plans } from "./Plans.ts"

/** Attempts as rows of a statement: `result`, each with the values of `row`, then with those of the attempt. */
const resultOf = (sql: SqlClient.SqlClient, attempts: ReadonlyArray<FinishedAttempt>, row: RowValues) => sql`
  result AS MATERIALIZED (
    SELECT * FROM unnest(
      ${row.values},
      ${arrayOf(attempts, ({ delivery }) => delivery.id)}::uuid[],
      ${arrayOf(attempts, ({ delivery }) => delivery.lease)}::uuid[],
      ${arrayOf(attempts, ({ startedAt }) => startedAt)}::float8[],
      ${arrayOf(attempts, ({ outcome }) => outcome.durationMs)}::int[],
      ${arrayOf(attempts, ({ outcome }) => outcome.httpStatus)}::smallint[],
      ${arrayOf(attempts, ({ outcome }) => outcome.errorCode)}::text[],
      ${arrayOf(attempts, ({ next }) => next.state)}::text[],
      ${arrayOf(attempts, ({ next }) => (next.state === "queued" ? Math.round(Duration.toMillis(next.delay)) : null))}::bigint[]
    ) AS r (${sql.literal(row.names)}, id, lease, started_at, duration_ms, http_status, error_code, state, delay_ms)
  )`

/** The values by which a statement finds the rows of attempts: arrays as its parameters, and the columns they become. */
interface RowValues {
  readonly values: Statement.Fragment
  readonly names: string
}

/** Where the rows are in the queue. */
const placesOf = (sql: SqlClient.SqlClient, attempts: ReadonlyArray<FinishedAttempt>): RowValues => ({
  values: sql`${arrayOf(attempts, ({ delivery }) => `"${delivery.ctid}"`)}::tid[]`,
  names: "place"
})

/** The rows' keys, here and in the history, with what else the history says of an attempt. */
const keysOf = (sql: SqlClient.SqlClient, attempts: ReadonlyArray<FinishedAttempt>): RowValues => ({
  values: sql`
      ${arrayOf(attempts, ({ delivery }) => delivery.organizationId)}::uuid[],
      ${arrayOf(attempts, ({ delivery }) => delivery.environment)}::text[],
      ${arrayOf(attempts, ({ delivery }) => delivery.endpointId)}::uuid[],
      ${arrayOf(attempts, ({ delivery }) => delivery.attempt)}::smallint[],
      ${arrayOf(attempts, ({ delivery }) => delivery.trigger)}::text[]`,
  names: "organization_id, environment, endpoint_id, number, trigger"
})

/** The attempt of a row `r` of `result`, in the form the history stores. */
const attempt = `
  ROW(r.number, r.trigger, to_timestamp(r.started_at / 1000), r.duration_ms, r.http_status, r.error_code)
    ::payments.delivery_attempt`

/**
 * The condition that a row of a table is the delivery of a row `r`. `= ANY` of one value means `=`, but can't be merged by: an
 * index read from end to end is then never worth its order. The planner would otherwise take that for the cheapest way into a
 * table that was empty when PostgreSQL last looked, and read all of it for each `r` for as long as it keeps that plan.
 */
const ofDelivery = (table: string) =>
  `${table}.organization_id = ANY (ARRAY[r.organization_id]) AND ${table}.environment = r.environment AND ${table}.id = r.id`

/**
 * The same in the history. With the endpoint, the index of an endpoint's deliveries finds the row as well as the primary
 * key does: while a day's table has no statistics, the planner takes one for as good as the other, and without the
 * endpoint would read all of the organization's deliveries of that day for each row.
 */
const inHistory = `${ofDelivery("d")} AND d.endpoint_id = r.endpoint_id`

/**
 * Whether the queue's row at a place is the delivery of a row `r`, under its lease. In a form that no index serves: the place
 * alone finds the row.
 */
const leasedAs = "CASE WHEN q.id = r.id THEN q.lease = r.lease END"

/**
 * The statements that write down attempts: one that records a batch and moves its deliveries on, and one for those
 * whose leases were lost meanwhile. Repeating them changes nothing more.
 *
 * A batch's rows are looked for where they were when they were leased, which costs a third as much as to find them by their
 * keys. Those that are not there, because the table was rewritten meanwhile, are looked for by their keys.
 */
export const makeFinish = (sql: SqlClient.SqlClient, run: RunStatement, plans: Plans) => {
  const delivered = sql.literal("d.state <> 'delivered' AND r.state = 'delivered'")

  // The queue's row says which delivery it is, and which attempt was under way
  const returningMoved = sql.literal(`
        RETURNING q.organization_id, q.environment, q.endpoint_id, q.id, q.attempt_count AS number,
          q.next_trigger AS trigger, r.lease, r.started_at, r.duration_ms, r.http_status, r.error_code, r.state`)

  /** Returns those whose row was not found under its lease. */
  const move = (attempts: ReadonlyArray<FinishedAttempt>, by: "place" | "key") => {
    // Fenced by the lease: a newer claim's work is never overwritten
    const isRow = sql.literal(
      by === "place" ? `q.ctid = r.place AND ${leasedAs}` : `${ofDelivery("q")} AND q.lease = r.lease`
    )
    const result = resultOf(sql, attempts, by === "place" ? placesOf(sql, attempts) : keysOf(sql, attempts))
    return Effect.map(
      run(
        sql<{ readonly id: DeliveryId; readonly lease: string }>`
      ${plans.mark} WITH ${result}, ended AS (
        DELETE FROM payments.delivery_queue q USING result r
        WHERE ${isRow} AND r.state <> 'queued'
        ${returningMoved}
      ), waiting AS (
        UPDATE payments.delivery_queue q SET
          lease = NULL, leased_until = NULL, next_attempt_at = now() + r.delay_ms * interval '1 millisecond'
        FROM result r
        WHERE ${isRow} AND r.state = 'queued'
        ${returningMoved}
      ), recorded AS (
        UPDATE payments.deliveries d SET
          attempts[r.number] = ${sql.literal(attempt)}, attempt_count = r.number, state = r.state,
          last_http_status = r.http_status, last_error_code = r.error_code,
          finished_at = CASE WHEN r.state <> 'queued' THEN now() END
        FROM (SELECT * FROM ended UNION ALL SELECT * FROM waiting) r
        WHERE ${sql.literal(inHistory)}
      )
      -- In most cases none. By the lease as well: a later attempt of the same delivery may be among them
      SELECT id, lease FROM result EXCEPT (SELECT id, lease FROM ended UNION ALL SELECT id, lease FROM waiting)`
      ),
      (rows) => {
        const left = new Set(rows.map(leaseOf))
        return left.size === 0 ? [] : attempts.filter(({ delivery }) => left.has(leaseOf(delivery)))
      }
    )
  }

  /** Takes deliveries out of the queue, whoever holds them. */
  const endWaiting = (attempts: ReadonlyArray<FinishedAttempt>) =>
    sql`
      ${plans.mark} WITH ${resultOf(sql, attempts, keysOf(sql, attempts))}
      DELETE FROM payments.delivery_queue q USING result r WHERE ${sql.literal(ofDelivery("q"))}`

  /**
   * Records attempts whose leases were lost: if another worker has assumed one to be lost, what is known replaces what
   * was assumed. A success ends the delivery as delivered, in whichever order the answers are recorded: an attempt that waits
   * is not made, and the outcome of one that is under way changes nothing more. Other outcomes move nothing.
   */
  const recordLate = (attempts: ReadonlyArray<FinishedAttempt>) => {
    const successes = attempts.filter(({ next }) => next.state === "delivered")
    return successes.length === 0
      ? updateLate(attempts)
      : transaction(sql)(
          endWaiting(successes).pipe(
            Effect.zipRight(updateLate(attempts)),
            // Again: before the history's row was locked, a re-send may have queued it
            Effect.zipRight(endWaiting(successes))
          )
        )
  }

  const updateLate = (attempts: ReadonlyArray<FinishedAttempt>) =>
    sql`
      ${plans.mark} WITH ${resultOf(sql, attempts, keysOf(sql, attempts))}
      UPDATE payments.deliveries d SET
        attempts[r.number] = ${sql.literal(attempt)}, attempt_count = GREATEST(d.attempt_count, r.number),
        state = CASE WHEN ${delivered} THEN 'delivered' ELSE d.state END,
        finished_at = CASE WHEN ${delivered} THEN now() ELSE d.finished_at END,
        last_http_status = CASE WHEN ${delivered} THEN r.http_status ELSE d.last_http_status END,
        last_error_code = CASE WHEN ${delivered} THEN NULL ELSE d.last_error_code END
      FROM result r
      WHERE ${sql.literal(inHistory)}
        AND (${delivered}
          OR COALESCE((d.attempts[r.number]).error_code = 'interrupted', (d.attempts[r.number]).number IS NULL))`

  return (attempts: ReadonlyArray<FinishedAttempt>): Effect.Effect<void, SqlError.SqlError> =>
    Effect.flatMap(move(attempts, "place"), (elsewhere) =>
      elsewhere.length === 0
        ? Effect.void
        : Effect.flatMap(move(elsewhere, "key"), (late) =>
            Effect.forEach(oncePerDelivery(late), recordLate, { discard: true })
          )
    )
}

/** A claim has one lease for all that it takes. */
const leaseOf = ({ id, lease }: Pick<ClaimedDelivery, "id" | "lease">): string => `${id} ${lease}`

/** Attempts in their order, none of a delivery together with another of the same: a statement changes a row once. */
const oncePerDelivery = (attempts: ReadonlyArray<FinishedAttempt>): ReadonlyArray<ReadonlyArray<FinishedAttempt>> => {
  const groups: Array<Array<FinishedAttempt>> = []
  const counts = new Map<DeliveryId, number>()
  for (const attempt of attempts) {
    const before = counts.get(attempt.delivery.id) ?? 0
    counts.set(attempt.delivery.id, before + 1)
    const group = groups[before]
    if (group === undefined) groups.push([attempt])
    else group.push(attempt)
  }
  return groups
}

/** The statement that gives claimed deliveries back: no attempt was made. */
export const makeRelease =
  (sql: SqlClient.SqlClient, plans: Plans) =>
  (deliveries: ReadonlyArray<ClaimedDelivery>, delay: Duration.Duration): Effect.Effect<void, SqlError.SqlError> =>
    sql`
    ${plans.mark} UPDATE payments.delivery_queue d SET
      lease = NULL, leased_until = NULL, attempt_count = d.attempt_count - 1,
      next_attempt_at = now() + ${Duration.toMillis(delay)} * interval '1 millisecond'
    FROM unnest(
      ${arrayOf(deliveries, ({ organizationId }) => organizationId)}::uuid[],
      ${arrayOf(deliveries, ({ environment }) => environment)}::text[],
      ${arrayOf(deliveries, ({ id }) => id)}::uuid[],
      ${arrayOf(deliveries, ({ lease }) => lease)}::uuid[]
    ) AS r (organization_id, environment, id, lease)
    WHERE ${sql.literal(ofDelivery("d"))} AND d.lease = r.lease`.pipe(Effect.asVoid)
