import { SqlClient, type SqlError, type Statement } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import { type Environment, environments } from "../../platform/kit/Environment.ts"
import type { DeliveryId, EndpointId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { reservedPool, transaction } from "../../platform/storage/Database.ts"
import { makeRunning, type RunStatement } from "../../platform/storage/Statements.ts"
import { type MetricsWriter, observeMetrics } from "../../platform/telemetry/Metrics.ts"
import type { AttemptOutcome, NextStep } from "../attempts/Outcome.ts"
import {
  arrayOf,
  type Claim,
  type ClaimedDelivery,
  type ClaimOptions,
  type Destination,
  makeClaim,
  Plans,
  type StoredDestination,
  toSecret
} from "./Claim.ts"

/**
 * The delivery queue, in PostgreSQL: this module, the statements that it combines, and the code that fills it.
 *
 * Waiting deliveries are in a small table of their own, beside the history. A delivery that is due is claimed with a
 * lease: if a worker dies, the row comes due again when the lease expires. The attempt is counted at the claim, so that
 * one cut off by a crash is counted too; the claim that finds the abandoned lease writes its record in the history,
 * `interrupted`.
 *
 * A claim identifies its rows by their place (`ctid`), within one statement that has locked them, since keys cost more.
 * Places are unique within one table only, so `payments.delivery_queue` must never be partitioned; it holds only
 * waiting deliveries.
 */

/** One for claims and one for records, both of which run all the time, and one for the rest. */
const connections = 3

export class Queue extends Context.Tag("connected-payments/engine/Queue")<
  Queue,
  {
    /** Claims due deliveries, at most `limit`, taking turns between endpoints. */
    readonly claim: (options: ClaimOptions) => Effect.Effect<Claim, SqlError.SqlError>
    /** The destinations of claimed deliveries, by endpoint; they include secrets that no longer sign. */
    readonly destinations: (
      deliveries: ReadonlyArray<Pick<ClaimedDelivery, keyof Tenant | "endpointId">>
    ) => Effect.Effect<ReadonlyMap<EndpointId, Destination>, SqlError.SqlError>
    /**
     * Records attempts and advances their deliveries, in one statement. An attempt whose lease was lost is recorded in
     * a second one, and ends its delivery if it was a success. Idempotent.
     */
    readonly finish: (attempts: ReadonlyArray<FinishedAttempt>) => Effect.Effect<void, SqlError.SqlError>
    /** Releases claimed deliveries without an attempt; they come due after the delay. */
    readonly release: (
      deliveries: ReadonlyArray<ClaimedDelivery>,
      delay: Duration.Duration
    ) => Effect.Effect<void, SqlError.SqlError>
  }
>() {
  static readonly layer: Layer.Layer<Queue, never, SqlClient.SqlClient> = Layer.scoped(
    Queue,
    Effect.flatMap(reservedPool(connections, { planOnce: true }), (own) => Effect.provide(makeQueue, own))
  )
}

const makeQueue: Effect.Effect<Queue["Type"], never, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const run = yield* makeRunning
  const plans = new Plans(sql)
  const destinations: Queue["Type"]["destinations"] = (deliveries) =>
    Effect.map(
      sql<StoredDestination>`
        SELECT p.id AS "endpointId", p.url, p.deleted_at IS NOT NULL AS "isDeleted", (
          SELECT json_agg(json_build_object('id', s.id, 'masterKeyId', s.master_key_id,
            'ciphertext', translate(encode(s.ciphertext, 'base64'), E'\n', ''),
            'retiredAt', EXTRACT(EPOCH FROM s.retired_at) * 1000) ORDER BY s.created_at DESC)
          FROM payments.endpoint_secrets s
          WHERE s.organization_id = p.organization_id AND s.environment = p.environment AND s.endpoint_id = p.id
        ) AS secrets
        FROM unnest(${arrayOf(deliveries, ({ organizationId }) => organizationId)}::uuid[],
          ${arrayOf(deliveries, ({ environment }) => environment)}::text[],
          ${arrayOf(deliveries, ({ endpointId }) => endpointId)}::uuid[]) AS r (organization_id, environment, id)
        JOIN payments.endpoints p
          ON p.organization_id = r.organization_id AND p.environment = r.environment AND p.id = r.id`,
      (rows) =>
        new Map(
          rows.map(({ endpointId, isDeleted, secrets, url }) => [
            endpointId,
            { url, isDeleted, secrets: (secrets ?? []).map(toSecret) }
          ])
        )
    )

  return {
    claim: makeClaim(sql, run, plans),
    destinations,
    finish: makeFinish(sql, run, plans),
    release: makeRelease(sql, plans)
  }
})

export interface FinishedAttempt {
  readonly delivery: ClaimedDelivery
  /** In Unix milliseconds. */
  readonly startedAt: number
  readonly outcome: AttemptOutcome
  readonly next: NextStep
}

/** The part `result` of a statement: one row per attempt, with the columns of `row`, then those of the attempt. */
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

/** The values by which a statement finds the attempts' rows: its array parameters, and the columns they become. */
interface RowValues {
  readonly values: Statement.Fragment
  readonly names: string
}

const placesOf = (sql: SqlClient.SqlClient, attempts: ReadonlyArray<FinishedAttempt>): RowValues => ({
  values: sql`${arrayOf(attempts, ({ delivery }) => `"${delivery.ctid}"`)}::tid[]`,
  names: "place"
})

/** The rows' keys, in the queue and in the history, with the other columns of an attempt that the history stores. */
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
 * The condition that a row of a table is the delivery of a row `r`. `= ANY` of one value means `=`, but rules out a
 * merge join, so that reading an index from end to end is never worth its order. The planner would otherwise choose
 * that for a table that was empty when PostgreSQL last analyzed it, and read all of it for each `r` for as long as it
 * keeps the plan.
 */
const ofDelivery = (table: string) =>
  `${table}.organization_id = ANY (ARRAY[r.organization_id]) AND ${table}.environment = r.environment AND ${table}.id = r.id`

/**
 * The same in the history. With the endpoint, the index of an endpoint's deliveries finds the row as well as the
 * primary key does. While a day's table has no statistics, the planner rates the two alike; without the endpoint, it
 * might choose that index and read all of the organization's deliveries of that day for each row.
 */
const inHistory = `${ofDelivery("d")} AND d.endpoint_id = r.endpoint_id`

/**
 * Whether the queue's row at a place is the delivery of a row `r`, under its lease. Written so that no index can be
 * used: the place alone finds the row.
 */
const leasedAs = "CASE WHEN q.id = r.id THEN q.lease = r.lease END"

/** The statements for attempts whose leases were lost: see `makeFinish`. */
const makeRecordLate = (sql: SqlClient.SqlClient, plans: Plans) => {
  const delivered = sql.literal("d.state <> 'delivered' AND r.state = 'delivered'")

  /** Removes deliveries from the queue, whoever holds their leases. */
  const endWaiting = (attempts: ReadonlyArray<FinishedAttempt>) =>
    sql`
      ${plans.mark} WITH ${resultOf(sql, attempts, keysOf(sql, attempts))}
      DELETE FROM payments.delivery_queue q USING result r WHERE ${sql.literal(ofDelivery("q"))}`

  /**
   * Records attempts whose leases were lost. If another worker has recorded one as interrupted, the actual outcome
   * replaces that. A success ends the delivery as delivered, in whichever order the answers are recorded: a waiting
   * attempt is not made, and the outcome of one in progress has no further effect. Other outcomes don't change the
   * delivery's state.
   */
  const recordLate = (attempts: ReadonlyArray<FinishedAttempt>) => {
    const successes = attempts.filter(({ next }) => next.state === "delivered")
    return successes.length === 0
      ? updateLate(attempts)
      : transaction(sql)(
          endWaiting(successes).pipe(
            Effect.zipRight(updateLate(attempts)),
            // Repeated because a re-send may have queued it before the history's row was locked
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

  return recordLate
}

/**
 * The statements that record attempts: one records a batch and advances its deliveries, the other is for attempts whose
 * leases were lost meanwhile. Both are idempotent.
 *
 * A batch's rows are found by their place when they were leased, which costs a third as much as by key. Rows that are
 * no longer there, because the table was rewritten meanwhile, are found by key.
 */
export const makeFinish = (sql: SqlClient.SqlClient, run: RunStatement, plans: Plans) => {
  const recordLate = makeRecordLate(sql, plans)

  // The queue's row identifies the delivery and the attempt in progress
  const returningMoved = sql.literal(`
        RETURNING q.organization_id, q.environment, q.endpoint_id, q.id, q.attempt_count AS number,
          q.next_trigger AS trigger, r.lease, r.started_at, r.duration_ms, r.http_status, r.error_code, r.state`)

  /** Returns the attempts whose row was not found under its lease. */
  const move = (attempts: ReadonlyArray<FinishedAttempt>, by: "place" | "key") => {
    // Fenced by the lease, so that a newer claim's work is never overwritten
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

/**
 * Splits attempts, in order, into groups with at most one attempt per delivery: a statement updates a row only once.
 */
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

/**
 * How many deliveries of the queue are read, the first to come due: a few milliseconds' work, however many wait. Beyond
 * them, the depth is an estimate.
 */
const usualWindow = 10_000

interface Row {
  readonly environment: Environment
  readonly due: number
  readonly scheduled: number
  /** The age of the oldest due delivery, in seconds. */
  readonly oldest: number | null
}

/**
 * The depth of the queue in each environment, and the age of its oldest due delivery. Every process queries them before
 * each export; they cover the whole installation, so those of any one process are valid. None are exported while the
 * database can't be queried: stale ones would suggest that all is well.
 *
 * Exact while fewer than `window` deliveries wait. Beyond that, PostgreSQL's own estimate of the index's size is split
 * in the proportions of those read; an environment that is not among them has an age of 0, since none of its deliveries
 * came due earlier.
 */
export const observeQueueWithin = (window: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const look = sql<Row>`
    WITH head AS MATERIALIZED (
      -- What is in flight comes due when its lease ends
      SELECT environment, GREATEST(next_attempt_at, leased_until) AS due_at
      FROM payments.delivery_queue ORDER BY next_attempt_at LIMIT ${window}
    ), size AS (
      SELECT CASE WHEN n < ${window} THEN 1
        ELSE GREATEST(1, (SELECT reltuples FROM pg_class WHERE oid = 'payments.delivery_queue_due'::regclass) / n) END AS factor
      FROM (SELECT count(*) AS n FROM head) AS counted
    )
    SELECT environment,
      (count(*) FILTER (WHERE due_at <= now()) * factor)::float8 AS due,
      (count(*) FILTER (WHERE due_at > now()) * factor)::float8 AS scheduled,
      EXTRACT(EPOCH FROM now() - min(due_at) FILTER (WHERE due_at <= now()))::float8 AS oldest
    FROM head, size GROUP BY environment, factor`
    return observeMetrics((metrics) =>
      look.pipe(
        Effect.tap((rows) => Effect.sync(() => setAll(metrics, rows))),
        Effect.onError(() => Effect.sync(() => forgetAll(metrics))),
        Effect.catchAll((error) => Effect.logDebug("The queue could not be looked at", error))
      )
    )
  })

/** The same, with a window of 10,000. */
export const observeQueue = observeQueueWithin(usualWindow)

const depth = "connected_payments.delivery.queue.depth"
const age = "connected_payments.delivery.queue.oldest_due_age"

const set = (metrics: MetricsWriter, environment: Environment, value: Omit<Row, "environment">): void => {
  metrics.set(depth, Math.round(value.due), [environment, "due"])
  metrics.set(depth, Math.round(value.scheduled), [environment, "scheduled"])
  metrics.set(age, value.oldest ?? 0, [environment])
}

const forgetAll = (metrics: MetricsWriter): void => {
  for (const environment of environments) {
    set(metrics, environment, { due: Number.NaN, scheduled: Number.NaN, oldest: Number.NaN })
  }
}

const setAll = (metrics: MetricsWriter, rows: ReadonlyArray<Row>): void => {
  for (const environment of environments) {
    const row = rows.find((row) => row.environment === environment)
    set(metrics, environment, row ?? { due: 0, scheduled: 0, oldest: null })
  }
}
