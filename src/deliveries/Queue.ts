import type { SqlClient, SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import { type DeliveryId, deliveryId, type EndpointId } from "../kit/Ids.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { reservedConnections } from "../storage/Database.ts"
import type { AttemptOutcome } from "./Attempt.ts"
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
import { maxAutomaticAttempts } from "./RetryPolicy.ts"

/**
 * The queue of deliveries, in PostgreSQL: the only module with its SQL.
 *
 * What waits stands in a small table of its own, beside the history. A delivery that is due is claimed with a lease:
 * where a worker dies, the row comes due again when that ends. The attempt is counted at the claim, so that one that a
 * crash cut off is not forgotten; its record in the history, `interrupted`, is written by the claim that finds the
 * abandoned lease.
 */

export type { AttemptTrigger } from "./Claim.ts"

/** One endpoint that an event goes to. */
export interface Subscriber {
  readonly endpointId: EndpointId
  /** The secrets that will sign: the current one first. */
  readonly secretIds: ReadonlyArray<string>
}

/** A delivery as it is stored with its event. */
export interface NewDelivery {
  readonly id: DeliveryId
  readonly endpointId: EndpointId
  readonly eventId: string
  readonly secretIds: ReadonlyArray<string>
}

/** The deliveries of an event: the same event and endpoint always get the same id. */
export const newDeliveries = (
  event: { readonly id: string; readonly receivedAt: Date },
  subscribers: ReadonlyArray<Subscriber>
): ReadonlyArray<NewDelivery> =>
  subscribers.map(({ endpointId, secretIds }) => ({
    id: deliveryId({ eventId: event.id, endpointId, receivedAt: event.receivedAt }),
    endpointId,
    eventId: event.id,
    secretIds
  }))

/** What becomes of a delivery after an attempt. */
export type NextStep =
  | { readonly state: "delivered" | "failed" }
  | { readonly state: "queued"; readonly delay: Duration.Duration }

/** An attempt that was made, to be recorded. */
export interface FinishedAttempt {
  readonly delivery: ClaimedDelivery
  readonly startedAt: Date
  readonly outcome: AttemptOutcome
  readonly next: NextStep
}

/** One for claims and one for records, which go on all the time, and one for the rest. */
const connections = 3

/** How many due rows a claim looks at, as a multiple of its limit, to pick fairly across endpoints. */
const windowFactor = 2

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
     * Records attempts and moves their deliveries on, in one statement. A worker that has lost its lease records its
     * attempt but does not move the delivery.
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
    Effect.map(reservedConnections(connections), makeQueue)
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

  /**
   * Conditions stand in forms that leave the planner no choice but to follow the index in its order and stop at the
   * limit: it knows little of a table that is empty one minute and full the next. A range written as `>=` and `<=` is
   * taken for a few rows, which are all read and then sorted; `>= ANY` of one value means the same and is not.
   */
  const claim = (options: ClaimOptions) => {
    const busy = [...options.inFlight]
    const { askedFor = [], leftOut = [] } = options
    const saturated = busy.filter(([, count]) => count >= options.perEndpoint).map(([id]) => id)
    return Effect.suspend(() => {
      const lease = crypto.randomUUID()
      return Effect.map(
        sql<ClaimRow>`
        ${planned()} WITH next AS MATERIALIZED (
          SELECT ctid AS tid, endpoint_id, next_attempt_at
          FROM payments.delivery_queue
          WHERE next_attempt_at >= ANY (ARRAY[${options.from ?? queueStart}::timestamptz]) AND next_attempt_at <= now()
            AND (leased_until IS NULL OR leased_until <= now())
            AND NOT (endpoint_id = ANY (${arrayOf([...saturated, ...leftOut], itself)}::uuid[]))
          ORDER BY next_attempt_at
          LIMIT ${options.limit * windowFactor}
        ), asked AS MATERIALIZED (
          SELECT a.tid, w.endpoint_id, a.next_attempt_at
          FROM unnest(${arrayOf(askedFor, ({ endpointId }) => endpointId)}::uuid[],
            ${arrayOf(askedFor, ({ from }) => `"${from}"`)}::timestamptz[],
            ${arrayOf(askedFor, ({ room }) => room)}::int[]) AS w (endpoint_id, since, room)
          CROSS JOIN LATERAL (
            SELECT ctid AS tid, next_attempt_at FROM payments.delivery_queue
            WHERE next_attempt_at >= ANY (ARRAY[w.since]) AND next_attempt_at <= now()
              AND CASE WHEN endpoint_id = w.endpoint_id THEN leased_until IS NULL OR leased_until <= now() END
            ORDER BY next_attempt_at LIMIT w.room
          ) AS a
        ), due AS (
          SELECT * FROM next UNION ALL SELECT * FROM asked
        ), chosen AS MATERIALIZED (
          SELECT tid FROM (
            SELECT due.tid, due.next_attempt_at, COALESCE(busy.attempts, 0)
              + row_number() OVER (PARTITION BY due.endpoint_id ORDER BY due.next_attempt_at) AS turn
            FROM due LEFT JOIN unnest(${arrayOf(busy, ([id]) => id)}::uuid[], ${arrayOf(busy, ([, count]) => count)}::int[])
              AS busy (endpoint_id, attempts) ON busy.endpoint_id = due.endpoint_id
          ) AS ranked
          WHERE turn <= ${options.perEndpoint}
          ORDER BY turn, next_attempt_at
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
        SELECT q.*, d.organization_id AS "organizationId", d.environment, d.id, d.attempt_count AS attempt,
          d.next_trigger AS trigger, d.endpoint_id AS "endpointId", d.event_id AS "eventId", d.traceparent, e.payload,
          array_to_string(d.secret_ids, ',') AS "secretIds", (EXTRACT(EPOCH FROM d.created_at) * 1000)::float8 AS "createdAt"
        FROM (
          SELECT (EXTRACT(EPOCH FROM now()) * 1000)::float8 AS "claimedAt",
            (pg_relation_size('payments.deliveries') / 8192)::float8 AS pages,
            (SELECT count(*) FROM next) >= ${options.limit * windowFactor} AS more,
            -- A row that is stored late stands at the time when its transaction began: look back a little
            LEAST((SELECT min(next_attempt_at) FROM next), now() - interval '2 seconds')::text AS place,
            (SELECT json_agg(json_build_array(endpoint_id, first)) FROM (
              SELECT endpoint_id, min(next_attempt_at)::text AS first FROM asked GROUP BY endpoint_id
            ) AS a) AS "askedFor",
            (EXTRACT(EPOCH FROM (
              SELECT next_attempt_at FROM payments.delivery_queue
              WHERE next_attempt_at > now() ORDER BY next_attempt_at LIMIT 1
            ) - now()) * 1000)::float8 AS "nextDueInMillis"
        ) AS q
        LEFT JOIN (claimed d JOIN payments.events e
          ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id) ON true`,
        (rows) => {
          growth = Math.floor(Math.log2((rows[0]?.pages ?? 0) + 1) / 2)
          return toClaim(rows, lease)
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

  const finish = (attempts: ReadonlyArray<FinishedAttempt>) =>
    sql`
      ${planned()} WITH result AS MATERIALIZED (
        SELECT * FROM unnest(
          ${arrayOf(attempts, ({ delivery }) => delivery.organizationId)}::uuid[],
          ${arrayOf(attempts, ({ delivery }) => delivery.environment)}::text[],
          ${arrayOf(attempts, ({ delivery }) => delivery.id)}::uuid[],
          ${arrayOf(attempts, ({ delivery }) => delivery.lease)}::uuid[],
          ${arrayOf(attempts, ({ delivery }) => delivery.attempt)}::smallint[],
          ${arrayOf(attempts, ({ delivery }) => delivery.trigger)}::text[],
          ${arrayOf(attempts, ({ startedAt }) => startedAt.getTime())}::bigint[],
          ${arrayOf(attempts, ({ outcome }) => outcome.durationMs)}::int[],
          ${arrayOf(attempts, ({ outcome }) => outcome.httpStatus)}::smallint[],
          ${arrayOf(attempts, ({ outcome }) => outcome.errorCode)}::text[],
          ${arrayOf(attempts, ({ next }) => next.state)}::text[],
          ${arrayOf(attempts, ({ next }) => (next.state === "queued" ? Math.round(Duration.toMillis(next.delay)) : null))}::bigint[]
        ) AS r (organization_id, environment, id, lease, number, trigger, started_at, duration_ms, http_status,
          error_code, state, delay_ms)
      ), ended AS (
        -- Fenced by the lease: a newer claim's work is never overwritten
        DELETE FROM payments.delivery_queue q USING result r
        WHERE q.organization_id = r.organization_id AND q.environment = r.environment AND q.id = r.id
          AND q.lease = r.lease AND r.state <> 'queued'
        RETURNING q.id
      ), waiting AS (
        UPDATE payments.delivery_queue q SET
          lease = NULL, leased_until = NULL, next_attempt_at = now() + r.delay_ms * interval '1 millisecond'
        FROM result r
        WHERE q.organization_id = r.organization_id AND q.environment = r.environment AND q.id = r.id
          AND q.lease = r.lease AND r.state = 'queued'
        RETURNING q.id
      ), recorded AS MATERIALIZED (
        SELECT r.*, m.id IS NOT NULL AS moved,
          ROW(r.number, r.trigger, to_timestamp(r.started_at / 1000.0), r.duration_ms, r.http_status, r.error_code)
            ::payments.delivery_attempt AS attempt
        FROM result r LEFT JOIN (SELECT id FROM ended UNION ALL SELECT id FROM waiting) m ON m.id = r.id
      )
      UPDATE payments.deliveries d SET
        attempts[r.number] = r.attempt,
        attempt_count = GREATEST(d.attempt_count, r.number),
        state = CASE WHEN r.moved THEN r.state ELSE d.state END,
        last_http_status = CASE WHEN r.moved THEN r.http_status ELSE d.last_http_status END,
        last_error_code = CASE WHEN r.moved THEN r.error_code ELSE d.last_error_code END,
        finished_at = CASE WHEN NOT r.moved THEN d.finished_at WHEN r.state <> 'queued' THEN now() END
      FROM recorded r
      WHERE d.organization_id = r.organization_id AND d.environment = r.environment AND d.id = r.id
        -- A slow worker's attempt that another one has taken for lost: what is known replaces what was guessed
        AND (r.moved OR COALESCE((d.attempts[r.number]).error_code = 'interrupted', (d.attempts[r.number]).number IS NULL))`.pipe(
      Effect.asVoid
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
