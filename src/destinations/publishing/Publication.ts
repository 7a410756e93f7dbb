import type { SqlClient, Statement } from "@effect/sql"
import { type EnqueueLease, enqueue, enqueueLeased } from "../../engine/queue/Enqueue.ts"
import { type NewDelivery, newDeliveries, type Subscriber } from "../../engine/queue/NewDelivery.ts"
import { type FilterSubjects, passes } from "../../events/Filters.ts"
import { storeSubjects } from "../../events/StoredSubjects.ts"
import type { KeyedHash } from "../../platform/kit/KeyedHash.ts"
import { eventKey } from "./EventKey.ts"
import type { MatchableEndpoint } from "./MatchableEndpoint.ts"

/**
 * The single entry point: an event is stored with its deliveries, or not at all. Events from notifications, replays, an
 * embedding team and synthetic tests are all stored by these parts of a statement. So none of them can store an event
 * without queueing its deliveries, or send to an endpoint that was deleted or paused in the meantime.
 */

/** An event to store, with the endpoints that it goes to. */
export interface NewEvent {
  readonly id: string
  readonly type: string
  /** The exact text that is signed and sent. */
  readonly payload: string
  /** The facts that filters read besides the payload, in stored form: see `StoredSubjects.ts`. Default: none. */
  readonly filterSubjects?: string | null
  /** Includes paused endpoints, for which the event is recorded as skipped. */
  readonly matching: ReadonlyArray<Subscriber>
}

/** An event with the endpoints that `matchEvent` found. */
export interface MatchedEvent<Type extends string = string> extends NewEvent {
  readonly type: Type
  readonly matching: ReadonlyArray<MatchableEndpoint>
}

/** An event whose endpoints have not been found yet. */
export interface MatchableEvent<Type extends string> extends Pick<NewEvent, "id" | "payload"> {
  readonly type: Type
  readonly data: Readonly<Record<string, unknown>>
}

/** The facts that filters read besides `data`, and the hash under which they are stored. */
export interface KnownSubjects {
  readonly subjects: FilterSubjects
  readonly keyedHash: KeyedHash["Type"]
}

/** The subjects of an event for which only `data` is applicable (contract 7.6). */
const dataOnly: FilterSubjects = { priceIds: null, productIds: null, metadata: null }

/**
 * An event with the endpoints that subscribe to its type and whose filters it passes, paused ones included.
 *
 * @param known without it, only the event's `data` is applicable
 */
export const matchEvent = <Type extends string>(
  { data, id, payload, type }: MatchableEvent<Type>,
  endpoints: ReadonlyArray<MatchableEndpoint>,
  known?: KnownSubjects
): MatchedEvent<Type> => ({
  id,
  type,
  payload,
  filterSubjects: known === undefined ? null : storeSubjects(known.keyedHash, id, known.subjects),
  matching: endpoints.filter(
    ({ events, filters }) => events.includes(type) && passes(filters, { data, subjects: known?.subjects ?? dataOnly })
  )
})

/** Events that came together and are published at once. */
export interface Publication {
  readonly events: ReadonlyArray<NewEvent>
  readonly receivedAt: Date
}

/** The values that the parts below take, by name. Positions number the publications, from 1. */
export interface PublicationValues {
  readonly eventIds: ReadonlyArray<string>
  readonly eventKeys: ReadonlyArray<string>
  readonly eventTypes: ReadonlyArray<string>
  readonly eventPayloads: ReadonlyArray<string>
  readonly eventSubjects: ReadonlyArray<string | null>
  readonly eventPositions: ReadonlyArray<number>
  /** One delivery for each event and endpoint, as JSON. */
  readonly deliveries: string
}

/** Decides whether a delivery of an event should be stored under a lease. */
export type OfferDelivery<P extends Publication> = (delivery: NewDelivery, event: NewEvent, publication: P) => boolean

/**
 * The values for publications. The same event, endpoint and time always give a delivery the same id. `offer` is called
 * once for each delivery; default: none is stored under a lease.
 */
export const publicationValues = <P extends Publication>(
  publications: ReadonlyArray<P>,
  offer: OfferDelivery<P> = () => false
): PublicationValues => {
  const events = publications.flatMap((publication, index) =>
    publication.events.map((event) => ({
      ...event,
      publication,
      key: eventKey(event.id, publication.receivedAt),
      position: index + 1
    }))
  )
  return {
    eventIds: events.map(({ id }) => id),
    eventKeys: events.map(({ key }) => key),
    eventTypes: events.map(({ type }) => type),
    eventPayloads: events.map(({ payload }) => payload),
    eventSubjects: events.map(({ filterSubjects = null }) => filterSubjects),
    eventPositions: events.map(({ position }) => position),
    deliveries: JSON.stringify(
      events.flatMap(({ key, position, publication, ...event }) =>
        newDeliveries({ id: event.id, receivedAt: publication.receivedAt }, event.matching).map((delivery) => ({
          ...delivery,
          type: event.type,
          key,
          position,
          leased: offer(delivery, event, publication)
        }))
      )
    )
  }
}

/** These values as the surrounding statement refers to them: as parameters, or as literals. */
export type PublicationParameters = Readonly<Record<keyof PublicationValues, Statement.Fragment>>

export const parametersFor = (sql: SqlClient.SqlClient, values: PublicationValues): PublicationParameters => ({
  eventIds: sql`${values.eventIds}`,
  eventKeys: sql`${values.eventKeys}`,
  eventTypes: sql`${values.eventTypes}`,
  eventPayloads: sql`${values.eventPayloads}`,
  eventSubjects: sql`${values.eventSubjects}`,
  eventPositions: sql`${values.eventPositions}`,
  deliveries: sql`${values.deliveries}`
})

/** Where a publication comes from. */
export interface PublicationSource extends Pick<Publication, "receivedAt"> {
  /** The provider event that it comes from; null if there is none. */
  readonly providerEventId: string | null
  /** The source that a skipped event names. */
  readonly sourceEventId: string | null
  readonly traceparent: string | null
}

/** The part `source` of a statement with one publication. Other statements have more columns and rows in theirs. */
export const sourcePart = (
  sql: SqlClient.SqlClient,
  tenant: { readonly organizationId: string; readonly environment: string },
  { providerEventId, receivedAt, sourceEventId, traceparent }: PublicationSource
): Statement.Fragment => sql`
  source AS (
    SELECT 1::bigint AS position, ${tenant.organizationId}::uuid AS organization_id, ${tenant.environment}::text AS environment,
      ${providerEventId}::text AS provider_event_id, ${sourceEventId}::text AS source_event_id,
      ${traceparent}::text AS traceparent, ${receivedAt.toISOString()}::timestamptz AS received_at
  )`

/** Deliveries to create for events already stored, all to one endpoint. */
export interface FurtherDeliveries {
  readonly organizationId: string
  readonly environment: string
  readonly endpointId: string
  /** The secrets that will sign, the current one first. */
  readonly secretIds: ReadonlyArray<string>
  readonly ids: ReadonlyArray<string>
  /** The key of each one's event. */
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

/** The rules that differ between publishers. */
export interface PublicationRules {
  /** The part of the statement that holds the sources to store. Default: `source`, which is all of them. */
  readonly from?: string
  /** Whether the deliveries are synthetic tests. */
  readonly test?: boolean
  /** Conditions in the surrounding statement: whether deliveries and skipped events are stored. Default: always. */
  readonly deliveriesIf?: Statement.Fragment
  readonly skippedIf?: Statement.Fragment
  /**
   * The lease for offered deliveries; without it, none is leased. With it, the part `queued` returns `id` and `leased`.
   */
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
  const { admits, deliveriesIf = always, lease, skippedIf = always, test = false } = rules
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
    FROM matching m WHERE m.active AND ${isFrom} AND ${deliveriesIf}
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
