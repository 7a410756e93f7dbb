import { SqlClient, type SqlError } from "@effect/sql"
import { Context, type Duration, Effect, Layer } from "effect"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { reservedPool } from "../../platform/storage/Database.ts"
import { makeRunning } from "../../platform/storage/Statements.ts"
import {
  arrayOf,
  type Claim,
  type ClaimedDelivery,
  type ClaimOptions,
  type Destination,
  Plans,
  type StoredDestination,
  toSecret
} from "./Claim.ts"
import { makeClaim } from "./ClaimStatement.ts"
import { type FinishedAttempt, makeFinish, makeRelease } from "./RecordStatements.ts"

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
