import type { SqlClient, Statement } from "@effect/sql"
import { type FilterSubjects, passes } from "../events/Filters.ts"
import { enqueue } from "./Enqueue.ts"
import type { MatchableEndpoint } from "./MatchableEndpoint.ts"
import { newDeliveries, type Subscriber } from "./NewDelivery.ts"

/**
 * The door: an event is stored with its deliveries, or not at all. What a notification leads to, what a replay makes up
 * for, a team's own events and synthetic tests are all stored by these parts of a statement, so that none of them can
 * store an event without queueing its deliveries, or go to an endpoint that was deleted or paused meanwhile.
 */

/** An event to store, with the endpoints that it goes to. */
export interface NewEvent {
  readonly id: string
  readonly type: string
  /** The exact text that is signed and sent. */
  readonly payload: string
  /** Paused endpoints included: those are told what they missed. */
  readonly matching: ReadonlyArray<Subscriber>
}

/** An event whose endpoints were found by `matchEvent`. */
export interface MatchedEvent<Type extends string = string> extends NewEvent {
  readonly type: Type
  readonly matching: ReadonlyArray<MatchableEndpoint>
}

/** An event before it is known to whom it goes. */
export interface MatchableEvent<Type extends string> extends Pick<NewEvent, "id" | "payload"> {
  readonly type: Type
  readonly data: Readonly<Record<string, unknown>>
}

/** An event with the endpoints that subscribe to its type and whose filters it passes, paused ones included. */
export const matchEvent = <Type extends string>(
  { data, id, payload, type }: MatchableEvent<Type>,
  subjects: FilterSubjects,
  endpoints: ReadonlyArray<MatchableEndpoint>
): MatchedEvent<Type> => ({
  id,
  type,
  payload,
  matching: endpoints.filter(({ events, filters }) => events.includes(type) && passes(filters, { data, subjects }))
})

/** The values of the parts below, by their names. */
export interface PublicationValues {
  readonly eventIds: ReadonlyArray<string>
  readonly eventTypes: ReadonlyArray<string>
  readonly eventPayloads: ReadonlyArray<string>
  /** A delivery for each event and endpoint, as JSON. */
  readonly deliveries: string
}

/** The values of events that came at a time. The same event, endpoint and time always give a delivery the same id. */
export const publicationValues = (events: ReadonlyArray<NewEvent>, receivedAt: Date): PublicationValues => ({
  eventIds: events.map(({ id }) => id),
  eventTypes: events.map(({ type }) => type),
  eventPayloads: events.map(({ payload }) => payload),
  deliveries: JSON.stringify(
    events.flatMap(({ id, matching, type }) =>
      newDeliveries({ id, receivedAt }, matching).map((delivery) => ({ ...delivery, type }))
    )
  )
})

/** Where the statement around has these values: parameters, or literals. */
export type PublicationParameters = Readonly<
  Record<"organizationId" | "environment" | keyof PublicationValues, Statement.Fragment>
>

/** What differs between those who publish. */
export interface PublicationRules {
  /** The provider's event that gave rise to these; `NULL` for those of others. */
  readonly providerEventId: Statement.Fragment
  /** What a skipped event names as its source. */
  readonly sourceEventId: Statement.Fragment
  readonly traceparent: Statement.Fragment
  /** Whether the deliveries are synthetic tests. */
  readonly test?: boolean
  /** Conditions of the statement around: whether events, deliveries and skipped events are stored. Default: always. */
  readonly eventsIf?: Statement.Fragment
  readonly deliveriesIf?: Statement.Fragment
  readonly skippedIf?: Statement.Fragment
  /** Whether an event of the type in this column is stored at all. Default: any. */
  readonly admits?: (column: string) => Statement.Fragment
}

/**
 * The part `matching`: the deliveries whose endpoints are still there, with `active`. What is paused by now is skipped,
 * what is deleted is gone, whatever was looked up before.
 */
export const matchingPart = (
  sql: SqlClient.SqlClient,
  of: PublicationParameters,
  { admits }: Pick<PublicationRules, "admits"> = {}
): Statement.Fragment => sql`
  matching AS (
    SELECT d.*, p.active
    FROM json_to_recordset(${of.deliveries}::json)
      AS d (id uuid, "endpointId" uuid, "eventId" text, "secretIds" uuid[], type text)
    JOIN payments.endpoints p ON p.organization_id = ${of.organizationId}::uuid
      AND p.environment = ${of.environment}::text AND p.id = d."endpointId" AND p.deleted_at IS NULL
    WHERE ${admits?.("d.type") ?? sql`true`}
  )`

/**
 * The parts `event`, `delivery`, `queued` and `skipped`, which stand behind `matching`. An event or delivery that exists
 * stays as it is: `event` and `delivery` hold what is new.
 */
export const storingParts = (
  sql: SqlClient.SqlClient,
  of: PublicationParameters,
  rules: PublicationRules
): Statement.Fragment => {
  const always = sql`true`
  const { admits, deliveriesIf = always, eventsIf = always, skippedIf = always, test = false } = rules
  return sql`
  event AS (
    INSERT INTO payments.events (organization_id, environment, id, type, payload, provider_event_id)
    SELECT ${of.organizationId}::uuid, ${of.environment}::text, e.id, e.type, e.payload, ${rules.providerEventId}::text
    FROM unnest(${of.eventIds}::text[], ${of.eventTypes}::text[], ${of.eventPayloads}::text[]) AS e (id, type, payload)
    WHERE ${eventsIf} AND ${admits?.("e.type") ?? always}
    ON CONFLICT (organization_id, environment, id) DO NOTHING
    RETURNING id
  ), delivery AS (
    INSERT INTO payments.deliveries
      (organization_id, environment, id, endpoint_id, event_id, secret_ids, test, traceparent, attempts)
    SELECT ${of.organizationId}::uuid, ${of.environment}::text, m.id, m."endpointId", m."eventId", m."secretIds",
      ${sql.literal(String(test))}, ${rules.traceparent}::text, '{}'
    FROM matching m WHERE m.active AND ${deliveriesIf}
    ON CONFLICT (organization_id, environment, id) DO NOTHING
    RETURNING *
  ), queued AS (${enqueue(sql, "delivery")}
  ), skipped AS (
    INSERT INTO payments.skipped_events (organization_id, environment, endpoint_id, event_id, type, provider_event_id)
    SELECT ${of.organizationId}::uuid, ${of.environment}::text, m."endpointId", m."eventId", m.type,
      ${rules.sourceEventId}::text
    FROM matching m WHERE NOT m.active AND ${skippedIf}
    ON CONFLICT (organization_id, environment, endpoint_id, event_id) DO NOTHING
    RETURNING 1
  )`
}

/** `PublicationParameters` for a statement that is written for one publication. */
export const parametersFor = (
  sql: SqlClient.SqlClient,
  tenant: { readonly organizationId: string; readonly environment: string },
  values: PublicationValues
): PublicationParameters => ({
  organizationId: sql`${tenant.organizationId}`,
  environment: sql`${tenant.environment}`,
  eventIds: sql`${values.eventIds}`,
  eventTypes: sql`${values.eventTypes}`,
  eventPayloads: sql`${values.eventPayloads}`,
  deliveries: sql`${values.deliveries}`
})
