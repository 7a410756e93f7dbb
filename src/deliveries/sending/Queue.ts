import type { SqlClient, SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import type { DeliveryId, EndpointId } from "../../kit/Ids.ts"
import type { Tenant } from "../../kit/Tenant.ts"
import { reservedConnections } from "../../storage/Database.ts"
import type { AttemptOutcome } from "../Attempt.ts"
import { maxAutomaticAttempts } from "../RetryPolicy.ts"
import {
  arrayOf,
  type Claim,
  type ClaimedDelivery,
  type ClaimOptions,
  type ClaimRow,
  type Destination,
  queueStart,
  type StoredDestination,
  toClaim,
  toSecret
} from "./Claim.ts"

/**
 * The queue of deliveries, in PostgreSQL: the only module with its SQL.
 *
 * What waits stands in a small table of its own, beside the history. A delivery that is due is claimed with a lease:
 * where a worker dies, the row comes due again when that ends. The attempt is counted at the claim, so that one that a
 * crash cut off is not forgotten; its record in the history, `interrupted`, is written by the claim that finds the
 * abandoned lease.
 *
 * A claim names its rows by their place (`ctid`), within one statement that has locked them: by key it costs more. Places
 * are unique within one table only, so `payments.delivery_queue` must never be partitioned; it holds only what waits.
 */

/** What becomes of a delivery after an attempt. */
export type NextStep =
  | { readonly state: "delivered" | "failed" }
  | { readonly state: "queued"; readonly delay: Duration.Duration }

/** An attempt that was made, to be recorded. */
export interface FinishedAttempt {
  readonly delivery: ClaimedDelivery
  /** In Unix milliseconds. */
  readonly startedAt: number
  readonly outcome: AttemptOutcome
  readonly next: NextStep
}

/** One for claims and one for records, which go on all the time, and one for the rest. */
const connections = 3

/** How many due rows a claim looks at, as a multiple of its limit, to pick fairly across endpoints. */
const windowFactor = 2

/** How many rows a claim of the newest looks at, whatever its limit, and how far back it goes. */
const newestWindow = 1024
const newestAge = "5 seconds"

export class Queue extends Context.Tag("connected-payments/deliveries/Queue")<
  Queue,
  {
    /** Claims due deliveries, at most `limit`, taking turns between endpoints. */
    readonly claim: (options: ClaimOptions) => Effect.Effect<Claim, SqlError.SqlError>
    /** The destinations of claimed deliveries, by endpoint; with secrets that do not sign any more, too. */
    readonly destinations: (
      deliveries: ReadonlyArray<Pick<ClaimedDelivery, keyof Tenant | "endpointId">>
    ) => Effect.Effect<ReadonlyMap<EndpointId, Destination>, SqlError.SqlError>
    /**
     * Records attempts and moves their deliveries on, in one statement. An attempt whose lease was lost is recorded in a
     * second one, and moves its delivery only where that has failed and this attempt was a success: see `afterLateRecord`.
     * Repeated, it changes nothing more.
     */
    readonly finish: (attempts: ReadonlyArray<FinishedAttempt>) => Effect.Effect<void, SqlError.SqlError>
    /** Gives claimed deliveries back without an attempt having been made; they come due after the delay. */
    readonly release: (
      deliveries: ReadonlyArray<ClaimedDelivery>,
      delay: Duration.Duration
    ) => Effect.Effect<void, SqlError.SqlError>
  }
>() {
  static readonly layer: Layer.Layer<Queue, never, SqlClient.SqlClient> = Layer.scoped(
    Queue,
    Effect.map(reservedConnections(connections, { planOnce: true }), makeQueue)
  )
}

const itself = <A>(value: A): A => value

function makeQueue(sql: SqlClient.SqlClient): Queue["Type"] {
  /** How many times the table of deliveries has grown fourfold, as the last claim saw it. */
  let growth = 0

  /**
   * Goes into each statement, so that it is planned anew when the table has grown: PostgreSQL keeps the plan of a
   * prepared statement, and one from when the table was empty would read all of it every time.
   */
  const planned = () => sql.literal(`/* ${growth} */`)

  /** What is due and may be taken, beside the endpoints that are asked for; at most `window` rows. */
  const lookedAt = ({ from = queueStart, look }: ClaimOptions, out: ReadonlyArray<EndpointId>, window: number) => {
    // Not `= ANY`, which compares with one after another: there may be thousands
    const free = sql`CASE WHEN leased_until IS NULL OR leased_until <= now()
      THEN endpoint_id NOT IN (SELECT unnest(${arrayOf(out, itself)}::uuid[])) END`
    return look === "newest"
      ? sql`
          SELECT tid, endpoint_id, next_attempt_at FROM (
            SELECT ctid AS tid, endpoint_id, next_attempt_at, leased_until FROM payments.delivery_queue
            WHERE next_attempt_at >= ANY (ARRAY[now() - ${newestAge}::interval]) AND next_attempt_at <= now()
            ORDER BY next_attempt_at DESC LIMIT ${newestWindow}
          ) AS newest
          WHERE ${free}
          ORDER BY next_attempt_at DESC LIMIT ${window}`
      : sql`
          SELECT ctid AS tid, endpoint_id, next_attempt_at FROM payments.delivery_queue
          WHERE next_attempt_at >= ANY (ARRAY[${from}::timestamptz]) AND next_attempt_at <= now() AND ${free}
          ORDER BY next_attempt_at LIMIT ${window}`
  }

  /**
   * Conditions stand in forms that leave the planner no choice but to follow the index in its order and stop at the
   * limit: it knows little of a table that is empty one minute and full the next. A range written as `>=` and `<=` is
   * taken for a few rows, which are all read and then sorted; `>= ANY` of one value means the same and is not. A range of
   * whole rows, ordered so, leaves the index of that order alone.
   */
  const claim = (options: ClaimOptions) => {
    const busy = [...options.inFlight]
    const { askedFor = [], caps, leftOut = [], perEndpoint, perNewcomer = perEndpoint } = options
    const capOf = (id: EndpointId) => caps?.get(id) ?? perEndpoint
    const saturated = busy.filter(([id, count]) => count >= capOf(id)).map(([id]) => id)
    const window = options.look === "asked" ? 0 : options.limit * windowFactor
    return Effect.suspend(() => {
      const lease = crypto.randomUUID()
      return Effect.map(
        sql<ClaimRow>`
        ${planned()} WITH next AS MATERIALIZED (${lookedAt(options, [...saturated, ...leftOut], window)}
        ), asked AS MATERIALIZED (
          SELECT a.tid, w.endpoint_id, a.next_attempt_at
          FROM unnest(${arrayOf(askedFor, ({ endpointId }) => endpointId)}::uuid[],
            ${arrayOf(askedFor, ({ from }) => `"${from}"`)}::timestamptz[],
            ${arrayOf(askedFor, ({ room }) => room)}::int[]) AS w (endpoint_id, since, room)
          CROSS JOIN LATERAL (
            SELECT ctid AS tid, next_attempt_at FROM payments.delivery_queue
            WHERE (endpoint_id, next_attempt_at) >= (w.endpoint_id, w.since)
              AND (endpoint_id, next_attempt_at) <= (w.endpoint_id, now())
              AND (leased_until IS NULL OR leased_until <= now())
            ORDER BY endpoint_id, next_attempt_at LIMIT w.room
          ) AS a
        ), due AS (
          SELECT * FROM next UNION ALL SELECT * FROM asked
        ), chosen AS MATERIALIZED (
          SELECT tid FROM (
            SELECT due.tid, due.next_attempt_at, COALESCE(busy.cap, ${perNewcomer}) AS cap, COALESCE(busy.attempts, 0)
              + row_number() OVER (PARTITION BY due.endpoint_id ORDER BY due.next_attempt_at) AS turn
            FROM due LEFT JOIN unnest(${arrayOf(busy, ([id]) => id)}::uuid[], ${arrayOf(busy, ([, count]) => count)}::int[],
              ${arrayOf(busy, ([id]) => capOf(id))}::int[])
              AS busy (endpoint_id, attempts, cap) ON busy.endpoint_id = due.endpoint_id
          ) AS ranked
          WHERE turn <= cap
          ORDER BY turn, next_attempt_at ${sql.literal(options.look === "newest" ? "DESC" : "ASC")}
          LIMIT ${options.limit}
        ), locked AS MATERIALIZED (
          -- Rows are named by their place, and through an array: with a join here, a stale plan exceeds the limit
          SELECT ctid AS tid, organization_id, environment, id, lease, attempt_count, next_trigger, claimed_at,
            lease IS NOT NULL AND (next_trigger = 'manual' OR attempt_count >= ${maxAutomaticAttempts}) AS used_up
          FROM payments.delivery_queue
          WHERE ctid = ANY (ARRAY(SELECT tid FROM chosen))
            -- Again, of the row as it is once it is locked; in a form that no index serves: without statistics yet,
            -- one would be read from end to end for it
            AND CASE WHEN leased_until IS NULL OR leased_until <= now() THEN next_attempt_at <= now() END
          FOR UPDATE SKIP LOCKED
        ), given_up AS (
          DELETE FROM payments.delivery_queue WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE used_up))
        ), interrupted AS (
          UPDATE payments.deliveries d SET
            attempts[l.attempt_count] = COALESCE(d.attempts[l.attempt_count],
              ROW(l.attempt_count, l.next_trigger, l.claimed_at, NULL, NULL, 'interrupted')::payments.delivery_attempt),
            attempt_count = l.attempt_count,
            state = CASE WHEN l.used_up THEN 'failed' ELSE 'queued' END,
            finished_at = CASE WHEN l.used_up THEN now() END,
            last_http_status = NULL, last_error_code = 'interrupted'
          FROM locked l
          WHERE l.lease IS NOT NULL AND d.organization_id = l.organization_id AND d.environment = l.environment
            AND d.id = l.id
        ), claimed AS (
          UPDATE payments.delivery_queue SET
            lease = ${lease}::uuid, claimed_at = now(), attempt_count = attempt_count + 1,
            leased_until = now() + ${Duration.toMillis(options.lease)} * interval '1 millisecond'
          WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE NOT used_up))
          RETURNING organization_id, environment, id, attempt_count, next_trigger, endpoint_id, event_id, secret_ids,
            created_at, traceparent
        )
        -- About the claim, in one row; then the deliveries, without it
        SELECT json_build_object(
            'claimedAt', date_part('epoch', now()) * 1000,
            'pages', pg_relation_size('payments.deliveries') / 8192,
            'more', (SELECT count(*) FROM next) >= ${window},
            -- A row that is stored late stands at the time when its transaction began: look back a little
            'place', LEAST((SELECT min(next_attempt_at) FROM next), now() - interval '2 seconds')::text,
            'askedFor', (SELECT json_agg(json_build_array(endpoint_id, first)) FROM (
              SELECT endpoint_id, min(next_attempt_at)::text AS first FROM asked GROUP BY endpoint_id
            ) AS a),
            'nextDueInMillis', date_part('epoch', (
              SELECT next_attempt_at FROM payments.delivery_queue
              WHERE next_attempt_at > now() ORDER BY next_attempt_at LIMIT 1
            ) - now()) * 1000
          ) AS claim, NULL::uuid AS "organizationId", NULL::text AS environment, NULL::uuid AS id, NULL::smallint AS attempt,
          NULL::text AS trigger, NULL::uuid AS "endpointId", NULL::text AS "eventId", NULL::text AS traceparent,
          NULL::text AS payload, NULL::text AS "secretIds", NULL::float8 AS "createdAt"
        UNION ALL
        SELECT NULL, d.organization_id, d.environment, d.id, d.attempt_count, d.next_trigger, d.endpoint_id, d.event_id,
          d.traceparent, e.payload, array_to_string(d.secret_ids, ','), date_part('epoch', d.created_at) * 1000
        FROM claimed d JOIN payments.events e
          ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id`,
        (rows) => {
          const claimed = toClaim(rows, lease)
          growth = Math.floor(Math.log2(claimed.pages + 1) / 2)
          return claimed
        }
      )
    })
  }

  const destinations: Queue["Type"]["destinations"] = (deliveries) =>
    Effect.map(
      sql<StoredDestination>`
        SELECT p.id AS "endpointId", p.url, (
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
          rows.map(({ endpointId, secrets, url }) => [endpointId, { url, secrets: (secrets ?? []).map(toSecret) }])
        )
    )

  /** Attempts as rows of a statement: `result (organization_id, …)`. */
  const resultOf = (attempts: ReadonlyArray<FinishedAttempt>) => sql`
    result AS MATERIALIZED (
      SELECT * FROM unnest(
        ${arrayOf(attempts, ({ delivery }) => delivery.organizationId)}::uuid[],
        ${arrayOf(attempts, ({ delivery }) => delivery.environment)}::text[],
        ${arrayOf(attempts, ({ delivery }) => delivery.id)}::uuid[],
        ${arrayOf(attempts, ({ delivery }) => delivery.lease)}::uuid[],
        ${arrayOf(attempts, ({ delivery }) => delivery.attempt)}::smallint[],
        ${arrayOf(attempts, ({ delivery }) => delivery.trigger)}::text[],
        ${arrayOf(attempts, ({ startedAt }) => startedAt)}::float8[],
        ${arrayOf(attempts, ({ outcome }) => outcome.durationMs)}::int[],
        ${arrayOf(attempts, ({ outcome }) => outcome.httpStatus)}::smallint[],
        ${arrayOf(attempts, ({ outcome }) => outcome.errorCode)}::text[],
        ${arrayOf(attempts, ({ next }) => next.state)}::text[],
        ${arrayOf(attempts, ({ next }) => (next.state === "queued" ? Math.round(Duration.toMillis(next.delay)) : null))}::bigint[]
      ) AS r (organization_id, environment, id, lease, number, trigger, started_at, duration_ms, http_status,
        error_code, state, delay_ms)
    )`

  /** The attempt of a row `r` of `result`, as the history has it. */
  const attempt = sql.literal(`
    ROW(r.number, r.trigger, to_timestamp(r.started_at / 1000), r.duration_ms, r.http_status, r.error_code)
      ::payments.delivery_attempt`)

  const ofDelivery = (table: string) =>
    sql.literal(
      `${table}.organization_id = r.organization_id AND ${table}.environment = r.environment AND ${table}.id = r.id`
    )

  const move = (attempts: ReadonlyArray<FinishedAttempt>) =>
    Effect.map(
      sql<{ readonly id: DeliveryId }>`
      ${planned()} WITH ${resultOf(attempts)}, ended AS (
        -- Fenced by the lease: a newer claim's work is never overwritten
        DELETE FROM payments.delivery_queue q USING result r
        WHERE ${ofDelivery("q")} AND q.lease = r.lease AND r.state <> 'queued'
        RETURNING r.*
      ), waiting AS (
        UPDATE payments.delivery_queue q SET
          lease = NULL, leased_until = NULL, next_attempt_at = now() + r.delay_ms * interval '1 millisecond'
        FROM result r
        WHERE ${ofDelivery("q")} AND q.lease = r.lease AND r.state = 'queued'
        RETURNING r.*
      ), recorded AS (
        UPDATE payments.deliveries d SET
          attempts[r.number] = ${attempt}, attempt_count = r.number, state = r.state,
          last_http_status = r.http_status, last_error_code = r.error_code,
          finished_at = CASE WHEN r.state <> 'queued' THEN now() END
        FROM (SELECT * FROM ended UNION ALL SELECT * FROM waiting) r
        WHERE ${ofDelivery("d")}
      )
      -- In most cases none
      SELECT id FROM result EXCEPT (SELECT id FROM ended UNION ALL SELECT id FROM waiting)`,
      (rows) => new Set(rows.map(({ id }) => id))
    )

  /**
   * Records attempts whose leases were lost: where another worker has taken one for lost, what is known replaces what
   * was guessed. They move nothing that waits or is under way; but what has failed since, and was delivered after all,
   * is delivered.
   */
  const delivered = sql.literal("d.state = 'failed' AND r.state = 'delivered'")

  const recordLate = (attempts: ReadonlyArray<FinishedAttempt>) =>
    sql`
      ${planned()} WITH ${resultOf(attempts)}
      UPDATE payments.deliveries d SET
        attempts[r.number] = ${attempt}, attempt_count = GREATEST(d.attempt_count, r.number),
        state = CASE WHEN ${delivered} THEN 'delivered' ELSE d.state END,
        finished_at = CASE WHEN ${delivered} THEN now() ELSE d.finished_at END,
        last_http_status = CASE WHEN ${delivered} THEN r.http_status ELSE d.last_http_status END,
        last_error_code = CASE WHEN ${delivered} THEN NULL ELSE d.last_error_code END
      FROM result r
      WHERE ${ofDelivery("d")}
        AND COALESCE((d.attempts[r.number]).error_code = 'interrupted', (d.attempts[r.number]).number IS NULL)`

  const finish = (attempts: ReadonlyArray<FinishedAttempt>) =>
    Effect.flatMap(move(attempts), (late) =>
      late.size === 0
        ? Effect.void
        : Effect.asVoid(recordLate(attempts.filter(({ delivery }) => late.has(delivery.id))))
    )

  const release = (deliveries: ReadonlyArray<ClaimedDelivery>, delay: Duration.Duration) =>
    sql`
      ${planned()} UPDATE payments.delivery_queue d SET
        lease = NULL, leased_until = NULL, attempt_count = d.attempt_count - 1,
        next_attempt_at = now() + ${Duration.toMillis(delay)} * interval '1 millisecond'
      FROM unnest(
        ${arrayOf(deliveries, ({ organizationId }) => organizationId)}::uuid[],
        ${arrayOf(deliveries, ({ environment }) => environment)}::text[],
        ${arrayOf(deliveries, ({ id }) => id)}::uuid[],
        ${arrayOf(deliveries, ({ lease }) => lease)}::uuid[]
      ) AS r (organization_id, environment, id, lease)
      WHERE d.organization_id = r.organization_id AND d.environment = r.environment AND d.id = r.id
        AND d.lease = r.lease`.pipe(Effect.asVoid)

  return { claim, destinations, finish, release }
}
