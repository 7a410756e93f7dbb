import type { SqlClient, Statement } from "@effect/sql"
import { signingSecretIds } from "../../engine/attempts/Signing.ts"
import { type EnqueueLease, enqueue, enqueueLeased } from "../../engine/queue/Enqueue.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { type OfferDelivery, type Publication, type PublicationValues, publicationValues } from "./Publication.ts"

/**
 * The single entry point: an event is stored with its deliveries, or not at all. Events from notifications, replays, an
 * embedding team and synthetic tests are all stored by these parts of a statement. So none of them can store an event
 * without queueing its deliveries, or send to an endpoint that was deleted or paused in the meantime.
 */

/** The tenant's endpoints, paused ones included, as JSON; `tenant` names a row with the tenant's columns. */
export const matchableEndpoints = (sql: SqlClient.SqlClient, tenant: string): Statement.Fragment =>
  sql.literal(`
    COALESCE((
      SELECT json_agg(json_build_object(
        'endpointId', p.id,
        'active', p.active AND s.ids IS NOT NULL,
        'events', COALESCE(p.events, ARRAY['payment.succeeded']),
        'filters', p.filters,
        'secretIds', COALESCE(s.ids, '[]')))
      -- Evaluated once per endpoint, not once per use
      FROM payments.endpoints p CROSS JOIN LATERAL (SELECT ${signingSecretIds("p")} AS ids OFFSET 0) s
      WHERE p.organization_id = ${tenant}.organization_id AND p.environment = ${tenant}.environment
        AND p.deleted_at IS NULL
    ), '[]')`)

/** These values as the surrounding statement refers to them: as parameters, or as literals. */
export type PublicationParameters = Readonly<Record<keyof PublicationValues, Statement.Fragment>>

const parametersFor = (sql: SqlClient.SqlClient, values: PublicationValues): PublicationParameters => ({
  eventIds: sql`${values.eventIds}`,
  eventKeys: sql`${values.eventKeys}`,
  eventTypes: sql`${values.eventTypes}`,
  eventPayloads: sql`${values.eventPayloads}`,
  eventSubjects: sql`${values.eventSubjects}`,
  eventPositions: sql`${values.eventPositions}`,
  deliveries: sql`${values.deliveries}`
})

export interface TenantPublication extends Publication {
  /** The provider event that they come from. Default: none. */
  readonly providerEventId?: string
  /** The source that a skipped event names. Default: none. */
  readonly sourceEventId?: string
  readonly traceparent?: string | null
}

/**
 * The parts of a statement that stores one publication: `source`, `matching`, and those of `storingParts`. Statements
 * with several publications have more columns and rows in their `source`.
 */
export const publicationParts = (
  sql: SqlClient.SqlClient,
  tenant: Tenant,
  publication: TenantPublication,
  rules: PublicationRules & { readonly offer?: OfferDelivery<Publication> } = {}
): Statement.Fragment => {
  const { providerEventId = null, receivedAt, sourceEventId = null, traceparent = null } = publication
  const of = parametersFor(sql, publicationValues([publication], rules.offer))
  return sql`
  source AS (
    SELECT 1::bigint AS position, ${tenant.organizationId}::uuid AS organization_id, ${tenant.environment}::text AS environment,
      ${providerEventId}::text AS provider_event_id, ${sourceEventId}::text AS source_event_id,
      ${traceparent}::text AS traceparent, ${receivedAt.toISOString()}::timestamptz AS received_at
  ), ${matchingPart(sql, of, rules)}, ${storingParts(sql, of, rules)}`
}

/** Deliveries to create for events already stored, all to one endpoint. */
export interface FurtherDeliveries {
  readonly organizationId: string
  readonly environment: string
  readonly endpointId: string
  readonly secretIds: ReadonlyArray<string>
  readonly ids: ReadonlyArray<string>
  readonly eventKeys: ReadonlyArray<string>
}

/**
 * The parts `delivery` and `queued` for events already stored. Existing deliveries are unchanged: `delivery` holds only
 * the new ones. The caller must have locked the endpoint's row, and must keep the events' days: see `keepDays`.
 */
export const furtherDeliveries = (sql: SqlClient.SqlClient, of: FurtherDeliveries): Statement.Fragment => sql`
  delivery AS (
    INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, attempts)
    SELECT ${of.organizationId}::uuid, ${of.environment}::text, d.id, ${of.endpointId}::uuid, d.event_id,
      ${of.secretIds}::uuid[], '{}'
    FROM unnest(${of.ids}::uuid[], ${of.eventKeys}::text[]) AS d (id, event_id)
    ON CONFLICT (organization_id, environment, id) DO NOTHING
    RETURNING *
  ), queued AS (${enqueue(sql, "delivery")})`

export interface PublicationRules {
  /** The part of the statement that holds the sources to store. Default: `source`, which is all of them. */
  readonly from?: string
  /** Whether the deliveries are synthetic tests. */
  readonly test?: boolean
  /** Condition in the surrounding statement: whether skipped events are stored. Default: always. */
  readonly skippedIf?: Statement.Fragment
  /** The lease for offered deliveries; with it, the part `queued` returns `id` and `leased`. */
  readonly lease?: EnqueueLease
  /** Condition on the column with an event's type for storing the event. Default: all are stored. */
  readonly admits?: (column: string) => Statement.Fragment
}

/**
 * Whether a value is among those of a part of the statement. Not a join: the planner expects few rows from a part, and
 * would use a nested loop over both. With `IN` it hashes the values.
 *
 * @param values a query without references to the surrounding one
 */
export const isAmong = (value: string, values: string): string =>
  `CASE WHEN ${value} IN (${values}) THEN true ELSE false END`

/**
 * The part `matching`, which follows `source`: the deliveries whose endpoints still exist, with `active` and their
 * source's columns. An endpoint that has since been paused, or has no secret, skips the event; a deleted one gets
 * nothing, whatever an earlier look-up found.
 */
export const matchingPart = (
  sql: SqlClient.SqlClient,
  of: PublicationParameters,
  { admits }: Pick<PublicationRules, "admits"> = {}
): Statement.Fragment => sql`
  matching AS (
    SELECT d.*, s.organization_id, s.environment, s.traceparent, s.source_event_id,
      p.active AND cardinality(d."secretIds") > 0 AS active
    FROM json_to_recordset(${of.deliveries}::json)
      AS d (position bigint, id uuid, "endpointId" uuid, "eventId" text, key text, "secretIds" uuid[], type text,
        leased boolean)
    JOIN source s ON s.position = d.position
    JOIN payments.endpoints p ON p.organization_id = s.organization_id AND p.environment = s.environment
      AND p.id = d."endpointId" AND p.deleted_at IS NULL
    WHERE ${admits?.("d.type") ?? sql`true`}
  )`

/**
 * The parts `event`, `delivery`, `queued` and `skipped`, which follow `matching`. Existing events and deliveries are
 * unchanged: `event` and `delivery` hold only the new ones.
 */
export const storingParts = (
  sql: SqlClient.SqlClient,
  of: PublicationParameters,
  rules: PublicationRules = {}
): Statement.Fragment => {
  const always = sql`true`
  const { admits, lease, skippedIf = always, test = false } = rules
  const from = sql.literal(rules.from ?? "source")
  const isFrom = sql.literal(
    rules.from === undefined ? "true" : isAmong("m.position", `SELECT s.position FROM ${rules.from} s`)
  )
  return sql`
  event AS (
    INSERT INTO payments.events
      (organization_id, environment, id, public_id, type, payload, filter_subjects, provider_event_id)
    SELECT s.organization_id, s.environment, e.key, e.id, e.type, e.payload,
      e.subjects, s.provider_event_id
    FROM unnest(${of.eventIds}::text[], ${of.eventKeys}::text[], ${of.eventTypes}::text[], ${of.eventPayloads}::text[],
      ${of.eventSubjects}::text[], ${of.eventPositions}::bigint[]) AS e (id, key, type, payload, subjects, position)
    JOIN ${from} s ON s.position = e.position
    WHERE ${admits?.("e.type") ?? always}
    ON CONFLICT (organization_id, environment, id) DO NOTHING
    RETURNING id
  ), delivery AS (
    INSERT INTO payments.deliveries
      (organization_id, environment, id, endpoint_id, event_id, secret_ids, test, traceparent, attempts)
    SELECT m.organization_id, m.environment, m.id, m."endpointId", m.key, m."secretIds",
      ${sql.literal(String(test))}, m.traceparent, '{}'
    FROM matching m WHERE m.active AND ${isFrom}
    ON CONFLICT (organization_id, environment, id) DO NOTHING
    RETURNING *
  ), queued AS (${lease === undefined ? enqueue(sql, "delivery") : enqueueLeased(sql, "delivery", "matching", lease)}
  ), skipped AS (
    INSERT INTO payments.skipped_events
      (organization_id, environment, endpoint_id, event_id, event_key, type, provider_event_id)
    SELECT m.organization_id, m.environment, m."endpointId", m."eventId", m.key, m.type, m.source_event_id
    FROM matching m WHERE NOT m.active AND ${isFrom} AND ${skippedIf}
    ON CONFLICT (organization_id, environment, endpoint_id, event_id) DO NOTHING
    RETURNING 1
  )`
}
