import { hash } from "node:crypto"
import { type NewDelivery, newDeliveries, type Subscriber } from "../../engine/queue/Enqueue.ts"
import { type FilterSubjects, type Filters, passes, storeSubjects } from "../../events/Filters.ts"
import type { KeyedHash } from "../../platform/kit/crypto/KeyedHash.ts"

/** Public ids that end with a hash, whose first digits are as good as any other hash. */
const hashed = /^svc_evt_([0-9a-f]{18})/

const digitsOf = (eventId: string): string => hashed.exec(eventId)?.[1] ?? hash("sha256", eventId, "hex").slice(0, 18)

/**
 * The id of an event in the database: a UUIDv7 with the time of its receipt, whose random part is a hash of its public
 * id. So new events are stored next to each other, those of a day in one table, and the same event and time always give
 * the same key. The public id is a hash: as a key, it would scatter new rows over an index that outgrows memory.
 */
export const eventKey = (eventId: string, receivedAt: Date): string => {
  const millis = Math.max(0, receivedAt.getTime()).toString(16).padStart(12, "0")
  const digits = digitsOf(eventId)
  return `${millis.slice(0, 8)}-${millis.slice(8)}-7${digits.slice(0, 3)}-8${digits.slice(3, 6)}-${digits.slice(6)}`
}

/** The fields of an endpoint that matching needs; for a paused one, the event is recorded as skipped. */
export interface MatchableEndpoint extends Subscriber {
  /** Also false without a secret: an endpoint that can't be signed for must not keep an event from all others. */
  readonly active: boolean
  readonly events: ReadonlyArray<string>
  readonly filters: Filters
}

export interface NewEvent {
  readonly id: string
  readonly type: string
  /** The exact text that is signed and sent. */
  readonly payload: string
  /** The facts that filters read besides the payload, in stored form: see `storeSubjects`. Default: none. */
  readonly filterSubjects?: string | null
  /** Includes paused endpoints, for which the event is recorded as skipped. */
  readonly matching: ReadonlyArray<Subscriber>
}

/** An event with the endpoints that `matchEvent` found. */
export interface MatchedEvent<Type extends string = string> extends NewEvent {
  readonly type: Type
  readonly matching: ReadonlyArray<MatchableEndpoint>
}

export interface MatchableEvent<Type extends string> extends Pick<NewEvent, "id" | "payload"> {
  readonly type: Type
  readonly data: Readonly<Record<string, unknown>>
}

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

export type OfferDelivery<P extends Publication> = (delivery: NewDelivery, event: NewEvent, publication: P) => boolean

/** The same event, endpoint and time always give a delivery the same id. `offer` is called for each delivery. */
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
