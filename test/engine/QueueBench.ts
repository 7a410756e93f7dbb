import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import { v7 } from "uuid"
import type { AttemptErrorCode, NextStep } from "../../src/engine/attempts/Outcome.ts"
import type { ClaimedDelivery, ClaimOptions } from "../../src/engine/queue/Claim.ts"
import { type FinishedAttempt, Queue } from "../../src/engine/queue/Queue.ts"
import type { Tenant } from "../../src/identity/Principal.ts"
import { DeliveryId, EndpointId, OrganizationId } from "../../src/platform/kit/Ids.ts"
import { databaseLayer } from "../../src/platform/storage/Database.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"

export interface DeliveryRow {
  readonly id: DeliveryId
  readonly state: string
  readonly attemptCount: number
  readonly leased: boolean
  readonly due: boolean
  /** Until it comes due, in seconds; null where it never will. */
  readonly dueIn: number | null
  readonly finished: boolean
  readonly lastHttpStatus: number | null
  readonly lastErrorCode: string | null
}

export interface AttemptRow {
  readonly number: number
  readonly trigger: string
  readonly durationMs: number | null
  readonly httpStatus: number | null
  readonly errorCode: string | null
}

export interface SeedOptions {
  readonly count?: number
  /** Negative: it has been due for so long. */
  readonly dueInSeconds?: number
  readonly attemptCount?: number
  readonly trigger?: "automatic" | "manual"
  readonly secretIds?: ReadonlyArray<string>
  /** How long ago it was queued. */
  readonly age?: Duration.DurationInput
}

/** A queue on a database of its own, and what a test does to the rows behind its back. */
export class QueueBench extends Context.Tag("test/QueueBench")<
  QueueBench,
  {
    readonly sql: SqlClient.SqlClient
    /** The queues of several processes: each on its own connections. */
    readonly queues: readonly [Queue["Type"], Queue["Type"]]
    readonly reset: Effect.Effect<void, SqlError.SqlError>
    readonly makeEndpoint: Effect.Effect<Endpoint, SqlError.SqlError>
    readonly seed: (
      endpoint: Endpoint,
      options?: SeedOptions
    ) => Effect.Effect<ReadonlyArray<DeliveryId>, SqlError.SqlError>
    readonly delivery: (id: DeliveryId) => Effect.Effect<DeliveryRow, SqlError.SqlError>
    readonly attempts: (id: DeliveryId) => Effect.Effect<ReadonlyArray<AttemptRow>, SqlError.SqlError>
    /** Lets the time pass until these deliveries are due: leases end, waits are over. */
    readonly elapse: (ids: ReadonlyArray<DeliveryId>) => Effect.Effect<void, SqlError.SqlError>
  }
>() {
  static readonly layer: Layer.Layer<QueueBench> = Layer.scoped(
    QueueBench,
    Effect.suspend(() => makeBench)
  ).pipe(Layer.orDie)
}

export interface Endpoint extends Tenant {
  readonly id: EndpointId
  readonly secretId: string
}

const makeBench = Effect.gen(function* () {
  const { url } = yield* createMigratedDatabase
  const connect = Effect.map(Layer.build(databaseLayer({ url, poolSize: 4 })), Context.get(SqlClient.SqlClient))
  const sql = yield* connect
  const queueOn = (own: SqlClient.SqlClient) =>
    Effect.map(Effect.provideService(Layer.build(Queue.layer), SqlClient.SqlClient, own), Context.get(Queue))
  const queues = [yield* queueOn(sql), yield* queueOn(yield* connect)] as const

  // What TRUNCATE ... CASCADE would empty: it makes new files for each partition of each day, which takes ten times as long
  const filled = yield* sql<{ readonly name: string }>`
    WITH RECURSIVE reached (oid) AS (
      SELECT unnest(ARRAY['payments.organizations', 'payments.events', 'payments.deliveries',
        'payments.delivery_queue']::regclass[])::oid
      UNION
      SELECT conrelid FROM pg_constraint JOIN reached ON confrelid = reached.oid WHERE contype = 'f'
    )
    SELECT oid::regclass::text AS name FROM reached JOIN pg_class USING (oid) WHERE NOT relispartition`
  // In whatever order: a replica does not check foreign keys
  const emptyAll = `DO $$ BEGIN SET LOCAL session_replication_role = replica; ${filled
    .map(({ name }) => `DELETE FROM ${name};`)
    .join(" ")} END $$`

  const makeEndpoint = Effect.gen(function* () {
    const organizationId = OrganizationId.make(v7())
    const id = EndpointId.make(v7())
    const secretId = v7()
    yield* sql`INSERT INTO payments.organizations (id, name) VALUES (${organizationId}, 'Bench')`
    yield* sql`INSERT INTO payments.workspaces (organization_id, environment) VALUES (${organizationId}, 'sandbox')`
    yield* sql`
      INSERT INTO payments.endpoints (organization_id, environment, id, name, url)
      VALUES (${organizationId}, 'sandbox', ${id}, 'Bench', 'http://127.0.0.1:9/hook')`
    yield* sql`
      INSERT INTO payments.endpoint_secrets (organization_id, environment, id, endpoint_id, master_key_id, ciphertext)
      VALUES (${organizationId}, 'sandbox', ${secretId}, ${id}, 'test', ${Buffer.from("sealed")})`
    return { organizationId, environment: "sandbox" as const, id, secretId }
  })

  const seed = Effect.fnUntraced(function* (endpoint: Endpoint, options: SeedOptions = {}) {
    const ids = Array.from({ length: options.count ?? 1 }, () => DeliveryId.make(v7()))
    yield* sql`
      INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
      SELECT ${endpoint.organizationId}, 'sandbox', id, 'svc_evt_' || id, 'payment.succeeded', '{"of":"' || id || '"}'
      FROM unnest(${ids}::uuid[]) AS id`
    yield* sql`
      WITH delivery AS (
        INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids,
          attempt_count, attempts, created_at)
        SELECT ${endpoint.organizationId}, 'sandbox', id, ${endpoint.id}, id::text,
          ${options.secretIds ?? [endpoint.secretId]}::uuid[], ${options.attemptCount ?? 0}, '{}',
          now() - ${Duration.toMillis(options.age ?? 0)} * interval '1 millisecond'
        FROM unnest(${ids}::uuid[]) AS id
        RETURNING *
      )
      INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids,
        attempt_count, next_trigger, next_attempt_at, created_at)
      SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids, attempt_count,
        ${options.trigger ?? "automatic"}, now() + ${options.dueInSeconds ?? 0} * interval '1 second', created_at
      FROM delivery`
    return ids
  })

  return {
    sql,
    queues,
    reset: Effect.asVoid(sql.unsafe(emptyAll)),
    makeEndpoint,
    seed,
    delivery: (id: DeliveryId) =>
      Effect.flatMap(
        sql<DeliveryRow>`
          SELECT d.id, d.state, COALESCE(q.attempt_count, d.attempt_count) AS "attemptCount",
            q.lease IS NOT NULL AS leased, COALESCE(COALESCE(q.leased_until, q.next_attempt_at) <= now(), false) AS due,
            EXTRACT(EPOCH FROM COALESCE(q.leased_until, q.next_attempt_at) - now())::float AS "dueIn",
            d.finished_at IS NOT NULL AS finished,
            d.last_http_status AS "lastHttpStatus", d.last_error_code AS "lastErrorCode"
          FROM payments.deliveries d LEFT JOIN payments.delivery_queue q USING (organization_id, environment, id)
          WHERE d.id = ${id} AND (d.state = 'queued') = (q.id IS NOT NULL)`,
        ([row]) =>
          row === undefined
            ? Effect.dieMessage("There is no such delivery, or no place for it in the queue")
            : Effect.succeed(row)
      ),
    attempts: (id: DeliveryId) =>
      sql<AttemptRow>`
        SELECT number, trigger, duration_ms AS "durationMs", http_status AS "httpStatus", error_code AS "errorCode"
        FROM payments.deliveries d, unnest(d.attempts) WHERE id = ${id} AND number IS NOT NULL ORDER BY number`,
    elapse: (ids: ReadonlyArray<DeliveryId>) =>
      Effect.asVoid(
        sql`
          UPDATE payments.delivery_queue SET next_attempt_at = now() - interval '1 millisecond',
            leased_until = CASE WHEN lease IS NOT NULL THEN now() - interval '1 millisecond' END
          WHERE id = ANY (${ids}::uuid[])`
      )
  }
})

export const claimFrom = (queue: Queue["Type"], options: ClaimOptions) =>
  Effect.map(queue.claim(options), ({ deliveries }) => deliveries)

/** As if the worker that claimed these had died of the answer, without confirming it. */
export const unconfirm = (sql: SqlClient.SqlClient, claimed: ReadonlyArray<ClaimedDelivery>) =>
  sql`
    INSERT INTO payments.unconfirmed_claims
    SELECT DISTINCT unnest(${claimed.map(({ lease }) => lease)}::uuid[])`

export const idle = {
  limit: 128,
  lease: Duration.seconds(15),
  perEndpoint: 1000,
  inFlight: new Map<EndpointId, number>()
}

/** An attempt that came to this, and what becomes of its delivery. */
export const finished = (
  delivery: ClaimedDelivery,
  httpStatus: number | null,
  next: NextStep,
  errorCode: AttemptErrorCode | null = next.state === "delivered" ? null : "http_error"
): FinishedAttempt => ({
  delivery,
  startedAt: Date.now(),
  outcome: { httpStatus, errorCode, durationMs: 12, retryAfter: null },
  next
})
