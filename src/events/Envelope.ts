/** The envelope in which every event reaches the consumer (contract, Event envelope). */
import { createHash } from "node:crypto"
import { Schema } from "effect"
import type { Environment } from "../Settings.ts"
import { type EventData, type EventType, eventData } from "./Catalog.ts"

/** `source.provider` of events that a provider event gave rise to. */
export const providerName = "stripe"

/** `source.provider` of synthetic test events. */
export const testProviderName = "svc_test"

/** The version of the envelope (contract, Versioning). */
export const envelopeVersion = 1

/** The last second that `created_at` can name with a four-digit year: 9999-12-31T23:59:59Z. */
export const maxUnixSeconds = 253_402_300_799

/** An event's id: of a provider event, or of a synthetic test. */
export const EventId = Schema.String.pipe(
  Schema.pattern(/^svc_(evt_[0-9a-f]{64}|test_evt_[A-Za-z0-9_-]+)$/)
).annotations({ identifier: "EventId", description: "Stable across retries; deduplicate by it" })

const isoTimestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const envelopeOf = <T extends EventType, A, I>(type: T, data: Schema.Schema<A, I>) =>
  Schema.Struct({
    id: EventId,
    type: Schema.Literal(type),
    version: Schema.Literal(envelopeVersion),
    created_at: Schema.String.pipe(Schema.pattern(isoTimestamp)).annotations({
      description: "When the event happened at the provider: ISO 8601, UTC, with milliseconds"
    }),
    livemode: Schema.Boolean.annotations({ description: "False in the sandbox" }),
    organization_id: Schema.UUID,
    source: Schema.Struct({
      provider: Schema.Literal(providerName, testProviderName),
      event_id: Schema.String.pipe(Schema.minLength(1)).annotations({ description: "The provider's event id" })
    }),
    data,
    test: Schema.optionalWith(Schema.Literal(true), { exact: true }).annotations({
      description: "Present, and true, only on synthetic events: they prove nothing about any payment"
    })
  }).annotations({ identifier: `Event.${type}`, description: `The envelope of ${type}` })

/** An event as the consumer receives it: `data` is what `type` says. */
export const Envelope = Schema.Union(
  envelopeOf("payment.succeeded", eventData["payment.succeeded"]),
  envelopeOf("payment.failed", eventData["payment.failed"]),
  envelopeOf("payment.refunded", eventData["payment.refunded"]),
  envelopeOf("dispute.created", eventData["dispute.created"]),
  envelopeOf("dispute.closed", eventData["dispute.closed"]),
  envelopeOf("checkout.completed", eventData["checkout.completed"]),
  envelopeOf("checkout.payment_succeeded", eventData["checkout.payment_succeeded"]),
  envelopeOf("checkout.payment_failed", eventData["checkout.payment_failed"]),
  envelopeOf("subscription.created", eventData["subscription.created"]),
  envelopeOf("subscription.renewed", eventData["subscription.renewed"]),
  envelopeOf("subscription.canceled", eventData["subscription.canceled"]),
  envelopeOf("subscription.payment_failed", eventData["subscription.payment_failed"]),
  envelopeOf("payout.paid", eventData["payout.paid"]),
  envelopeOf("payout.failed", eventData["payout.failed"]),
  envelopeOf("payout.created", eventData["payout.created"]),
  envelopeOf("payout.updated", eventData["payout.updated"]),
  envelopeOf("payout.canceled", eventData["payout.canceled"]),
  envelopeOf("milestone.first_payment", eventData["milestone.first_payment"]),
  envelopeOf("account.updated", eventData["account.updated"])
).annotations({ identifier: "Event", description: "A signed event, told apart by its type" })

/** See the schema of the same name. */
export type Envelope = typeof Envelope.Type

/** The envelope of one type. */
export interface EnvelopeOf<T extends EventType> {
  readonly id: string
  readonly type: T
  readonly version: typeof envelopeVersion
  readonly created_at: string
  readonly livemode: boolean
  readonly organization_id: string
  readonly source: { readonly provider: typeof providerName | typeof testProviderName; readonly event_id: string }
  readonly data: EventData<T>
  readonly test?: true
}

/** What makes an event distinct: one provider event gives rise to at most one event of each type per environment. */
export interface EventIdentity {
  readonly environment: Environment
  readonly providerEventId: string
  readonly type: EventType
}

/**
 * The event's id: `svc_evt_` and the SHA-256 in hex of environment, provider, provider event id and type, joined by
 * newlines. None of the four can hold a newline (the provider event id is checked on its way in), so that no two
 * identities give the same text.
 */
export const eventId = ({ environment, providerEventId, type }: EventIdentity): string => {
  const identity = [environment, providerName, providerEventId, type].join("\n")
  return `svc_evt_${createHash("sha256").update(identity).digest("hex")}`
}

/** What an event of the provider's becomes an envelope with. */
export interface EnvelopeInput<T extends EventType> {
  readonly environment: Environment
  readonly organizationId: string
  readonly providerEventId: string
  /** The provider event's own creation time, in whole Unix seconds, 0 to `maxUnixSeconds`. */
  readonly created: number
  readonly type: T
  readonly data: EventData<T>
}

/** The envelope of an event that a provider event gave rise to. Made twice from the same input it is the same. */
export const makeEnvelope = <T extends EventType>(input: EnvelopeInput<T>): EnvelopeOf<T> => ({
  id: eventId(input),
  type: input.type,
  version: envelopeVersion,
  created_at: new Date(input.created * 1000).toISOString(),
  livemode: input.environment === "production",
  organization_id: input.organizationId,
  source: { provider: providerName, event_id: input.providerEventId },
  data: input.data
})

/** What a synthetic event is made of. */
export interface TestEnvelopeInput<T extends EventType> {
  readonly organizationId: string
  /** Tells this test from all others: letters, digits, `_` and `-`, e.g. a UUID. */
  readonly testId: string
  readonly createdAt: Date
  readonly type: T
  /** Fictitious data. */
  readonly data: EventData<T>
}

/** The envelope of a synthetic event (contract, Synthetic test events): it always says that it is one. */
export const makeTestEnvelope = <T extends EventType>(input: TestEnvelopeInput<T>): EnvelopeOf<T> => {
  const id = `svc_test_evt_${input.testId}`
  return {
    id,
    type: input.type,
    version: envelopeVersion,
    created_at: input.createdAt.toISOString(),
    livemode: false,
    organization_id: input.organizationId,
    source: { provider: testProviderName, event_id: id },
    data: input.data,
    test: true
  }
}

/**
 * The exact JSON text that is signed and sent, with the contract's order of keys. It is made once and stored: the bytes
 * of a delivery never change between attempts.
 */
export const encodeEnvelope = (envelope: Envelope): string =>
  JSON.stringify({
    id: envelope.id,
    type: envelope.type,
    version: envelope.version,
    created_at: envelope.created_at,
    livemode: envelope.livemode,
    organization_id: envelope.organization_id,
    source: { provider: envelope.source.provider, event_id: envelope.source.event_id },
    data: envelope.data,
    ...(envelope.test === true ? { test: true } : {})
  })
