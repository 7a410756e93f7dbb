import { Effect, Schema } from "effect"
import { parse, v5, v7 } from "uuid"
import { rule } from "../bounds/Rules.ts"
import { Uuid } from "../bounds/Text.ts"

const idOf = <const Name extends string>(name: Name, of: string) =>
  Uuid.pipe(Schema.brand(name)).annotations({ identifier: name, description: `The ${of}'s id (UUID)` })

export const OrganizationId = idOf("OrganizationId", "organization").annotations(
  rule("must be the organization's UUID, which `GET /identity/api-key` returns for an API key")
)
export type OrganizationId = typeof OrganizationId.Type

export const EndpointId = idOf("EndpointId", "endpoint")
export type EndpointId = typeof EndpointId.Type

export const DeliveryId = idOf("DeliveryId", "delivery")
export type DeliveryId = typeof DeliveryId.Type

export const RecoveryId = idOf("RecoveryId", "recovery")
export type RecoveryId = typeof RecoveryId.Type

export const CheckoutPageId = idOf("CheckoutPageId", "checkout page")
export type CheckoutPageId = typeof CheckoutPageId.Type

export const EventReplayId = idOf("EventReplayId", "replay")
export type EventReplayId = typeof EventReplayId.Type

/** A new UUIDv7: ids sort by their time of creation. */
export const newId: Effect.Effect<string> = Effect.sync(() => v7())

export const firstIdAt = (millis: number): string => {
  const hex = Math.max(0, Math.floor(millis)).toString(16).padStart(12, "0")
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}

/** Sorts before the ids of that time and after all earlier ones. Same as `payments.id_at`. */
export const boundaryAt = (millis: number): string => firstIdAt(millis).replace("-7000-8000-", "-0000-0000-")

export const millisOf = (id: string): number => Number.parseInt(`${id.slice(0, 8)}${id.slice(9, 13)}`, 16)

/** The namespace that delivery ids are derived in; must never change, or a repeated event would be delivered twice. */
const deliveryNamespace = parse("0192f0c0-7a1e-7c52-9d3b-5f0e6a1c2b4d")

/**
 * The id of an event's delivery to an endpoint: a UUIDv7 of the receipt's time whose random part is a hash of both, so
 * that the same event and endpoint always give the same id and a second delivery breaks the primary key.
 */
export const deliveryId = (options: {
  readonly eventId: string
  readonly endpointId: EndpointId
  readonly receivedAt: Date
}): DeliveryId => {
  const digest = digestOf(options.eventId, options.endpointId)
  const [a = 0, b = 0, c = 0, d = 0] = digest
  return DeliveryId.make(
    v7({ msecs: options.receivedAt.getTime(), random: digest, seq: ((a << 24) | (b << 16) | (c << 8) | d) >>> 0 })
  )
}

const utf8 = new TextEncoder()

/**
 * A hash available on every platform: this module holds schemas of the contract, which a client may import. Works on
 * bytes, since it runs for each delivery: as text, the ids would be encoded and parsed again each time.
 */
const digestOf = (...names: ReadonlyArray<string>): Uint8Array =>
  v5(utf8.encode(names.join("\n")), deliveryNamespace, new Uint8Array(16))

/**
 * The id of the delivery that a replay creates for an event: a UUIDv7 of the replay's time, then of the event's to the
 * second, then a hash. The same replay, event and endpoint always give the same id, so that a replay delivers an event
 * once, and a replay's ids are in the order of its events.
 *
 * @param options.eventKey the event's id in the database, whose time is that of its receipt
 */
export const replayedDeliveryId = (options: {
  readonly replayId: EventReplayId
  readonly eventKey: string
  readonly endpointId: EndpointId
}): DeliveryId =>
  DeliveryId.make(
    v7({
      msecs: millisOf(options.replayId),
      random: digestOf(options.replayId, options.eventKey, options.endpointId),
      seq: Math.floor(millisOf(options.eventKey) / 1000) >>> 0
    })
  )
