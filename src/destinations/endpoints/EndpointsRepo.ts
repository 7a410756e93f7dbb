import { SqlClient } from "@effect/sql"
import { Duration, Effect, Option } from "effect"
import {
  canSign,
  hasEnded,
  isOverlapping,
  mayStillBeSent,
  signsNoNew,
  signsUntil
} from "../../engine/attempts/Signing.ts"
import type { Filters } from "../../events/Filters.ts"
import { neverReceived } from "../../events/NeverReceived.ts"
import { ResourceNotFound } from "../../platform/errors/Errors.ts"
import type { Encrypted } from "../../platform/kit/crypto/Cipher.ts"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import { mostCounted } from "../../platform/kit/Request.ts"
import { existingOf, ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { batchSize } from "../../platform/storage/Batches.ts"
import { alongIndex, boundedRead } from "../../platform/storage/BoundedReads.ts"
import { anyRow, firstRow } from "../../platform/storage/Database.ts"
import type { Endpoint, SkippedEvent } from "./Api.ts"

/** The most deliveries of an endpoint that are checked before one of its rotated secrets is erased early. */
const mostDeliveriesLookedThrough = 1000

/** The most replaced secrets of an endpoint that are kept: more rotations than anybody needs within 72 hours. */
const mostReplacedSecrets = 64

/** A skipped event with the exact text that would have been sent. */
type SkippedRow = Omit<SkippedEvent, "event"> & { readonly payload: string }

/** The state that decides whether something may be sent to an endpoint. */
export interface LockedEndpoint {
  readonly deleted: boolean
  readonly active: boolean
  readonly canSign: boolean
  readonly events: ReadonlyArray<string>
}

export const noEndpoint = () =>
  new ResourceNotFound({ message: "There is no such endpoint in this organization and environment." })

type Sql = SqlClient.SqlClient

type EndpointRow = Omit<Endpoint, "warnings">

const withWarnings = (row: EndpointRow): Endpoint => ({ ...row, warnings: neverReceived(row.events, row.filters) })

const first = ([row]: ReadonlyArray<EndpointRow>) => Option.map(Option.fromNullable(row), withWarnings)

const rowStatements = (sql: Sql) => {
  const columns = sql.literal(`
    e.id, e.name, e.url, e.environment, COALESCE(e.events, ARRAY['payment.succeeded']) AS events, e.filters, e.active,
    e.created_at AS "createdAt", e.updated_at AS "updatedAt",
    (SELECT max(${signsUntil("s")}) FROM payments.endpoint_secrets s
     WHERE s.organization_id = e.organization_id AND s.environment = e.environment AND s.endpoint_id = e.id
       AND ${isOverlapping("s")}) AS "previousSecretExpiresAt"`)

  return {
    find: (tenant: Tenant, id: EndpointId) =>
      Effect.map(
        sql<EndpointRow>`SELECT ${columns} FROM payments.endpoints e WHERE ${existingOf(sql, tenant, "e")} AND e.id = ${id}`,
        first
      ),

    list: (tenant: Tenant) =>
      Effect.map(
        sql<EndpointRow>`
          SELECT ${columns} FROM payments.endpoints e WHERE ${existingOf(sql, tenant, "e")} ORDER BY e.id DESC`,
        (rows) => rows.map(withWarnings)
      ),

    /** Null leaves a column as it is. */
    update: (
      tenant: Tenant,
      id: EndpointId,
      change: {
        readonly active: boolean | null
        readonly name: string | null
        readonly events: ReadonlyArray<string> | null
        readonly filters: Filters | null
      }
    ) =>
      Effect.map(
        sql<EndpointRow>`
          UPDATE payments.endpoints e SET
            active = COALESCE(${change.active}::boolean, e.active),
            name = COALESCE(${change.name}::text, e.name),
            events = COALESCE(${change.events}::text[], e.events),
            filters = COALESCE(${change.filters === null ? null : JSON.stringify(change.filters)}::jsonb, e.filters),
            updated_at = now()
          WHERE ${existingOf(sql, tenant, "e")} AND e.id = ${id}
          RETURNING ${columns}`,
        first
      )
  }
}

const endpointStatements = (sql: Sql) => ({
  /** Locks the workspace's row, so that a count of its endpoints holds; rows may still refer to it. */
  lockWorkspace: (tenant: Tenant) =>
    sql`
      SELECT 1 FROM payments.workspaces WHERE ${ofTenant(sql, tenant)} FOR NO KEY UPDATE`,

  count: (tenant: Tenant) =>
    Effect.map(
      sql<{
        count: number
      }>`SELECT count(*)::int AS count FROM payments.endpoints e WHERE ${existingOf(sql, tenant, "e")}`,
      ([row]) => row?.count ?? 0
    ),

  /** How many deliveries to each endpoint have failed in the last 24 hours, counted up to `mostCounted`. */
  recentFailures: (tenant: Tenant) =>
    Effect.map(
      sql<{ readonly id: EndpointId; readonly count: number }>`
          SELECT e.id, (
            SELECT count(*)::int FROM (
              SELECT 1 FROM payments.deliveries d
              WHERE d.organization_id = e.organization_id AND d.environment = e.environment AND d.endpoint_id = e.id
                AND NOT d.test AND d.failed_at > now() - interval '24 hours'
              LIMIT ${mostCounted}
            ) AS failed) AS count
          FROM payments.endpoints e WHERE ${existingOf(sql, tenant, "e")}`.pipe(boundedRead(sql)),
      (rows) => new Map(rows.map(({ count, id }) => [id, count]))
    ),

  insert: (
    tenant: Tenant,
    endpoint: {
      readonly id: EndpointId
      readonly name: string
      readonly url: string
      readonly events: ReadonlyArray<string>
      readonly filters: Filters
    }
  ) =>
    sql`
      INSERT INTO payments.endpoints (organization_id, environment, id, name, url, events, filters)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${endpoint.id}, ${endpoint.name}, ${endpoint.url},
        ${endpoint.events}::text[], ${JSON.stringify(endpoint.filters)}::jsonb)`,

  /** Against its deletion, a concurrent start of a recovery or replay, and another test. */
  lock: (tenant: Tenant, id: EndpointId) =>
    firstRow(sql<LockedEndpoint>`
        SELECT deleted_at IS NOT NULL AS deleted, active, ${sql.literal(canSign("endpoints"))} AS "canSign",
          COALESCE(events, ARRAY['payment.succeeded']) AS events
        FROM payments.endpoints WHERE ${ofTenant(sql, tenant)} AND id = ${id} FOR NO KEY UPDATE`),

  touch: (tenant: Tenant, id: EndpointId) =>
    sql`UPDATE payments.endpoints e SET updated_at = now() WHERE ${existingOf(sql, tenant, "e")} AND e.id = ${id}`,

  /** Whether there is or was such an endpoint: the history of a deleted one stays readable. */
  existed: (tenant: Tenant, id: EndpointId) =>
    anyRow(sql`SELECT 1 FROM payments.endpoints WHERE ${ofTenant(sql, tenant)} AND id = ${id}`)
})

const deletionStatements = (sql: Sql) => {
  /** Fails the deliveries that the common table expression `gone` has removed from the queue. */
  const failGone = sql.literal(`
    UPDATE payments.deliveries d SET
      state = 'failed', finished_at = now(), last_http_status = NULL, last_error_code = 'endpoint_deleted'
    FROM gone
    WHERE d.organization_id = gone.organization_id AND d.environment = gone.environment
      AND d.endpoint_id = gone.endpoint_id AND d.id = gone.id`)

  /** Whether no attempt of a queued delivery is under way. */
  const isFree = sql.literal("(leased_until IS NULL OR leased_until <= now())")

  return {
    markDeleted: (tenant: Tenant, id: EndpointId) =>
      sql`UPDATE payments.endpoints e SET deleted_at = now(), updated_at = now() WHERE ${existingOf(sql, tenant, "e")} AND e.id = ${id}`,

    /**
     * Fails deliveries that have no attempt under way, at most `batchSize`: those of this endpoint, which is being
     * deleted, or of all deleted endpoints. Returns how many. Run in a transaction.
     */
    failWaiting: (of: { readonly tenant: Tenant; readonly id: EndpointId } | "all deleted") =>
      Effect.map(
        sql<{ readonly count: number }>`
          WITH gone AS (
            DELETE FROM payments.delivery_queue
            -- By ctid, with the other conditions in a form that no index can serve, as in a claim
            WHERE ctid = ANY (ARRAY(
                SELECT q.tid FROM payments.endpoints e CROSS JOIN LATERAL (
                  SELECT ctid AS tid FROM payments.delivery_queue
                  WHERE (endpoint_id, next_attempt_at) >= (e.id, '-infinity'::timestamptz)
                    AND (endpoint_id, next_attempt_at) <= (e.id, 'infinity'::timestamptz)
                    AND CASE WHEN ${isFree} THEN organization_id = e.organization_id AND environment = e.environment END
                  ORDER BY endpoint_id, next_attempt_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
                ) q
                WHERE e.deleted_at IS NOT NULL
                  AND ${of === "all deleted" ? sql`true` : sql`${ofTenant(sql, of.tenant, "e")} AND e.id = ${of.id}`}
                LIMIT ${batchSize}
              ))
              AND CASE WHEN ${isFree} THEN true END
            RETURNING organization_id, environment, endpoint_id, id
          ), failed AS (${failGone})
          SELECT count(*)::int AS count FROM gone`.pipe((batch) => Effect.zipRight(alongIndex(sql), batch)),
        ([row]) => row?.count ?? 0
      ),

    /** Fails deliveries with an attempt under way: the attempts lose their leases, and are recorded like late ones. */
    failUnderWay: (tenant: Tenant, id: EndpointId) =>
      sql`
        WITH gone AS (
          DELETE FROM payments.delivery_queue WHERE ${ofTenant(sql, tenant)} AND endpoint_id = ${id}
          RETURNING organization_id, environment, endpoint_id, id
        )
        ${failGone}`
  }
}

const secretStatements = (sql: Sql) => ({
  insertSecret: (
    tenant: Tenant,
    secret: { readonly id: string; readonly endpointId: EndpointId; readonly encrypted: Encrypted }
  ) =>
    sql`
      INSERT INTO payments.endpoint_secrets
        (organization_id, environment, id, endpoint_id, master_key_id, ciphertext, created_at)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${secret.id}, ${secret.endpointId},
        ${secret.encrypted.masterKeyId}, ${secret.encrypted.ciphertext}, clock_timestamp())`,

  /** Retires the current secret by the clock: the transaction may have waited. Returns until when it signs. */
  retireSecret: (tenant: Tenant, id: EndpointId) =>
    Effect.map(
      sql<{ signsUntil: Date }>`
        UPDATE payments.endpoint_secrets SET retired_at = clock_timestamp()
        WHERE ${ofTenant(sql, tenant)} AND endpoint_id = ${id} AND retired_at IS NULL
        RETURNING ${sql.literal(signsUntil("endpoint_secrets"))} AS "signsUntil"`,
      ([row]) => Option.fromNullable(row?.signsUntil)
    )
})

const secretErasures = (sql: Sql) => ({
  /**
   * Erases expired secrets: after the overlap if no delivery that may still be sent is bound to them, and in any case
   * once they no longer sign anything. If an endpoint has too many deliveries to check, its secret stays until then.
   * Returns how many were erased, at most `batchSize`.
   */
  eraseRetiredSecrets: (batchSize: number) =>
    Effect.map(
      sql`
        WITH old AS MATERIALIZED (
          SELECT s.organization_id, s.environment, s.id FROM payments.endpoint_secrets s
          WHERE ${sql.literal(signsNoNew("s"))} AND (${sql.literal(hasEnded("s"))} OR (
            SELECT count(*) <= ${mostDeliveriesLookedThrough} AND NOT COALESCE(
              bool_or(s.id = ANY (d.secret_ids) AND ${sql.literal(mayStillBeSent("d"))}), false)
            FROM (
              SELECT secret_ids, state, created_at FROM payments.deliveries
              WHERE organization_id = s.organization_id AND environment = s.environment
                AND endpoint_id = s.endpoint_id
              LIMIT ${mostDeliveriesLookedThrough + 1}
            ) d
          ))
          ORDER BY s.retired_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
        )
        DELETE FROM payments.endpoint_secrets s USING old
        WHERE s.organization_id = old.organization_id AND s.environment = old.environment AND s.id = old.id
        RETURNING 1`,
      (rows) => rows.length
    ),

  /**
   * Erases replaced secrets beyond the newest 64. Reading an endpoint reads all of its secrets, so a program that
   * rotates endlessly would slow down everybody's deliveries. Deliveries still queued under an erased secret are signed
   * with the current one.
   */
  eraseSurplusSecrets: (tenant: Tenant, id: EndpointId) =>
    sql`
      DELETE FROM payments.endpoint_secrets WHERE ${ofTenant(sql, tenant)} AND id = ANY (ARRAY(
        SELECT id FROM payments.endpoint_secrets
        WHERE ${ofTenant(sql, tenant)} AND endpoint_id = ${id} AND retired_at IS NOT NULL
        ORDER BY retired_at DESC OFFSET ${mostReplacedSecrets}
        -- Housekeeping may be erasing them right now
        FOR UPDATE SKIP LOCKED
      ))`,

  eraseSecrets: (tenant: Tenant, id: EndpointId) =>
    sql`DELETE FROM payments.endpoint_secrets WHERE ${ofTenant(sql, tenant)} AND endpoint_id = ${id}`
})

const skippedStatements = (sql: Sql) => ({
  isSkipped: (tenant: Tenant, id: EndpointId, eventId: string) =>
    anyRow(sql`
        SELECT 1 FROM payments.skipped_events
        WHERE ${ofTenant(sql, tenant)} AND endpoint_id = ${id} AND event_id = ${eventId}`),

  /** Newest first, after the event `after` if given, and none skipped longer ago than `keepFor`. */
  listSkipped: (
    tenant: Tenant,
    id: EndpointId,
    page: { readonly after: string | undefined; readonly limit: number; readonly keepFor: Duration.Duration }
  ) => {
    const after =
      page.after === undefined
        ? []
        : [
            sql`(s.created_at, s.event_id) < (
              SELECT created_at, event_id FROM payments.skipped_events
              WHERE ${ofTenant(sql, tenant)} AND endpoint_id = ${id} AND event_id = ${page.after})`
          ]
    return sql<SkippedRow>`
      SELECT s.event_id AS "eventId", s.type, s.created_at AS "createdAt", e.payload
      FROM payments.skipped_events s JOIN payments.events e
        ON e.organization_id = s.organization_id AND e.environment = s.environment AND e.id = s.event_key
      WHERE ${sql.and([
        ofTenant(sql, tenant, "s"),
        sql`s.endpoint_id = ${id}`,
        sql`s.created_at >= now() - ${Duration.toMillis(page.keepFor)} * interval '1 millisecond'`,
        ...after
      ])}
      ORDER BY s.created_at DESC, s.event_id DESC LIMIT ${page.limit}`
  }
})

export const makeEndpointsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  ...endpointStatements(sql),
  ...rowStatements(sql),
  ...deletionStatements(sql),
  ...secretStatements(sql),
  ...secretErasures(sql),
  ...skippedStatements(sql)
}))
