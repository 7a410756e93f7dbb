import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import type { Tenant } from "../identity/Principal.ts"
import type { Encrypted } from "../kit/Cipher.ts"
import { type DeliveryId, deliveryId, type EndpointId } from "../kit/Ids.ts"
import type { AttemptOutcome } from "./Attempt.ts"
import { maxAutomaticAttempts } from "./RetryPolicy.ts"

/**
 * The queue of deliveries, in PostgreSQL: the only module with its SQL.
 *
 * A delivery that is due is claimed with a lease whose end is kept in `next_attempt_at`: where a worker dies, the row
 * comes due again by itself. The attempt is counted at the claim, so that one that a crash cut off is not forgotten; its
 * row in the history, `interrupted`, is written by the claim that finds the abandoned lease.
 */

/** Who asked for an attempt. */
export type AttemptTrigger = "automatic" | "manual"

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

/** A claimed delivery, with all that its attempt needs. */
export interface ClaimedDelivery extends Tenant {
  readonly id: DeliveryId
  readonly lease: string
  /** Number of the attempt to make, from 1. */
  readonly attempt: number
  readonly trigger: AttemptTrigger
  readonly endpointId: EndpointId
  readonly eventId: string
  readonly url: string
  /** The exact text to sign and send. */
  readonly payload: string
  readonly secrets: ReadonlyArray<{ readonly id: string; readonly masterKeyId: string; readonly ciphertext: string }>
  readonly traceparent: string | null
}

/** The secrets of a claimed delivery as `Cipher` takes them. */
export const encryptedSecrets = (
  delivery: ClaimedDelivery
): ReadonlyArray<{ readonly id: string; readonly encrypted: Encrypted }> =>
  delivery.secrets.map(({ ciphertext, id, masterKeyId }) => ({
    id,
    encrypted: { masterKeyId, ciphertext: Buffer.from(ciphertext, "base64") }
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

export interface ClaimOptions {
  /** Never more than this many are claimed. */
  readonly limit: number
  readonly lease: Duration.Duration
  /** Attempts in flight per endpoint, those of `inFlight` included. */
  readonly perEndpoint: number
  readonly inFlight: ReadonlyMap<EndpointId, number>
}

/** How many due rows a claim looks at, as a multiple of its limit, to pick fairly across endpoints. */
const windowFactor = 8

export class Queue extends Context.Tag("connected-payments/deliveries/Queue")<
  Queue,
  {
    /** Claims due deliveries, at most `limit`, taking turns between endpoints. */
    readonly claim: (options: ClaimOptions) => Effect.Effect<ReadonlyArray<ClaimedDelivery>, SqlError.SqlError>
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
  static readonly layer: Layer.Layer<Queue, never, SqlClient.SqlClient> = Layer.effect(
    Queue,
    Effect.map(SqlClient.SqlClient, makeQueue)
  )
}

function makeQueue(sql: SqlClient.SqlClient): Queue["Type"] {
  const claim = (options: ClaimOptions) => {
    const busy = [...options.inFlight]
    const saturated = busy.filter(([, count]) => count >= options.perEndpoint).map(([id]) => id)
    return Effect.flatMap(
      Effect.sync(() => crypto.randomUUID()),
      (lease) => sql<ClaimedDelivery>`
        WITH due AS MATERIALIZED (
          SELECT ctid AS tid, endpoint_id, next_attempt_at
          FROM payments.deliveries
          WHERE state = 'queued' AND next_attempt_at <= now() AND NOT (endpoint_id = ANY (${saturated}::uuid[]))
          ORDER BY next_attempt_at
          LIMIT ${options.limit * windowFactor}
        ), chosen AS MATERIALIZED (
          SELECT tid FROM (
            SELECT due.tid, due.next_attempt_at, COALESCE(busy.attempts, 0)
              + row_number() OVER (PARTITION BY due.endpoint_id ORDER BY due.next_attempt_at) AS turn
            FROM due LEFT JOIN unnest(${busy.map(([id]) => id)}::uuid[], ${busy.map(([, count]) => count)}::int[])
              AS busy (endpoint_id, attempts) ON busy.endpoint_id = due.endpoint_id
          ) AS ranked
          WHERE turn <= ${options.perEndpoint}
          ORDER BY turn, next_attempt_at
          LIMIT ${options.limit}
        ), locked AS MATERIALIZED (
          -- Rows are named by their place, and through an array: with a join here, a stale plan exceeds the limit
          SELECT ctid AS tid, organization_id, environment, id, lease, attempt_count, next_trigger, claimed_at,
            lease IS NOT NULL AND (next_trigger = 'manual' OR attempt_count >= ${maxAutomaticAttempts}) AS used_up
          FROM payments.deliveries
          WHERE ctid = ANY (ARRAY(SELECT tid FROM chosen)) AND state = 'queued' AND next_attempt_at <= now()
          FOR UPDATE SKIP LOCKED
        ), interrupted AS (
          INSERT INTO payments.delivery_attempts
            (organization_id, environment, delivery_id, number, trigger, started_at, error_code)
          SELECT organization_id, environment, id, attempt_count, next_trigger, claimed_at, 'interrupted'
          FROM locked WHERE lease IS NOT NULL
          ON CONFLICT DO NOTHING
        ), given_up AS (
          UPDATE payments.deliveries SET
            state = 'failed', lease = NULL, next_attempt_at = NULL, finished_at = now(),
            last_http_status = NULL, last_error_code = 'interrupted'
          WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE used_up))
        ), claimed AS (
          UPDATE payments.deliveries SET
            lease = ${lease}::uuid, claimed_at = now(), attempt_count = attempt_count + 1,
            next_attempt_at = now() + ${Duration.toMillis(options.lease)} * interval '1 millisecond'
          WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE NOT used_up))
          RETURNING *
        )
        SELECT d.organization_id AS "organizationId", d.environment, d.id, d.lease, d.attempt_count AS attempt,
          d.next_trigger AS trigger, d.endpoint_id AS "endpointId", d.event_id AS "eventId", d.traceparent,
          p.url, e.payload, COALESCE((
            SELECT json_agg(json_build_object('id', s.id, 'masterKeyId', s.master_key_id,
              'ciphertext', translate(encode(s.ciphertext, 'base64'), E'\n', '')) ORDER BY s.created_at DESC)
            FROM payments.endpoint_secrets s
            WHERE s.organization_id = d.organization_id AND s.environment = d.environment AND s.id = ANY (d.secret_ids)
              -- A rotated secret signs for 24 hours more, and longer for what was queued before the rotation
              AND (s.retired_at IS NULL OR s.retired_at > now() - interval '24 hours' OR d.created_at < s.retired_at)
          ), '[]') AS secrets
        FROM claimed d
        JOIN payments.events e
          ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
        JOIN payments.endpoints p
          ON p.organization_id = d.organization_id AND p.environment = d.environment AND p.id = d.endpoint_id`
    )
  }

  const finish = (attempts: ReadonlyArray<FinishedAttempt>) => {
    const column = <A>(of: (attempt: FinishedAttempt) => A): ReadonlyArray<A> => attempts.map(of)
    return sql`
      WITH result AS MATERIALIZED (
        SELECT * FROM unnest(
          ${column(({ delivery }) => delivery.organizationId)}::uuid[],
          ${column(({ delivery }) => delivery.environment)}::text[],
          ${column(({ delivery }) => delivery.id)}::uuid[],
          ${column(({ delivery }) => delivery.lease)}::uuid[],
          ${column(({ delivery }) => delivery.attempt)}::smallint[],
          ${column(({ delivery }) => delivery.trigger)}::text[],
          ${column(({ startedAt }) => startedAt)}::timestamptz[],
          ${column(({ outcome }) => outcome.durationMs)}::int[],
          ${column(({ outcome }) => outcome.httpStatus)}::smallint[],
          ${column(({ outcome }) => outcome.errorCode)}::text[],
          ${column(({ next }) => next.state)}::text[],
          ${column(({ next }) => (next.state === "queued" ? Duration.toMillis(next.delay) : null))}::bigint[]
        ) AS r (organization_id, environment, id, lease, number, trigger, started_at, duration_ms, http_status,
          error_code, state, delay_ms)
      ), moved AS (
        -- Fenced by the lease: a newer claim's work is never overwritten
        UPDATE payments.deliveries d SET
          state = r.state, lease = NULL, last_http_status = r.http_status, last_error_code = r.error_code,
          next_attempt_at = CASE WHEN r.state = 'queued' THEN now() + r.delay_ms * interval '1 millisecond' END,
          finished_at = CASE WHEN r.state = 'queued' THEN NULL ELSE now() END
        FROM result r
        WHERE d.organization_id = r.organization_id AND d.environment = r.environment AND d.id = r.id
          AND d.lease = r.lease
      )
      INSERT INTO payments.delivery_attempts
        (organization_id, environment, delivery_id, number, trigger, started_at, duration_ms, http_status, error_code)
      SELECT r.organization_id, r.environment, r.id, r.number, r.trigger, r.started_at, r.duration_ms, r.http_status,
        r.error_code
      FROM result r JOIN payments.deliveries d
        ON d.organization_id = r.organization_id AND d.environment = r.environment AND d.id = r.id
      -- A slow worker's attempt that another one has taken for lost: what is known replaces what was guessed
      ON CONFLICT (organization_id, environment, delivery_id, number) DO UPDATE SET
        started_at = excluded.started_at, duration_ms = excluded.duration_ms, http_status = excluded.http_status,
        error_code = excluded.error_code
      WHERE delivery_attempts.error_code = 'interrupted'`.pipe(Effect.asVoid)
  }

  const release = (deliveries: ReadonlyArray<ClaimedDelivery>, delay: Duration.Duration) =>
    sql`
      UPDATE payments.deliveries d SET
        lease = NULL, attempt_count = d.attempt_count - 1,
        next_attempt_at = now() + ${Duration.toMillis(delay)} * interval '1 millisecond'
      FROM unnest(
        ${deliveries.map(({ organizationId }) => organizationId)}::uuid[],
        ${deliveries.map(({ environment }) => environment)}::text[],
        ${deliveries.map(({ id }) => id)}::uuid[],
        ${deliveries.map(({ lease }) => lease)}::uuid[]
      ) AS r (organization_id, environment, id, lease)
      WHERE d.organization_id = r.organization_id AND d.environment = r.environment AND d.id = r.id
        AND d.lease = r.lease`.pipe(Effect.asVoid)

  return { claim, finish, release }
}
