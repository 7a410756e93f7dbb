/**
 * The form of the envelope (contract 6.1), one schema for each type. Apart from the making of envelopes, so
 * that the API's contract and the published schemas stand on it without server code.
 */
import { Schema } from "effect"
import { type EventType, eventData } from "./Catalog.ts"

/** `source.provider` of events that a provider event gave rise to. */
export const providerName = "stripe"

/** `source.provider` of synthetic test events. */
export const testProviderName = "svc_test"

/** The version of the envelope (contract 14.1). */
export const envelopeVersion = 1

/** An event's id: of a provider event, or of a synthetic test. */
export const EventId = Schema.String.pipe(
  Schema.pattern(/^svc_(evt_[0-9a-f]{64}|test_evt_[A-Za-z0-9_-]+)$/)
).annotations({ identifier: "EventId", description: "Stable across retries; deduplicate by it" })

const isoTimestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const OrganizationUuid = Schema.UUID.annotations({
  identifier: "OrganizationUuid",
  description: "The organization whose connected account the event came from"
})

const Source = Schema.Struct({
  provider: Schema.Literal(providerName, testProviderName).annotations({
    description: `Who reported it; ${testProviderName} on synthetic events`
  }),
  event_id: Schema.String.pipe(Schema.minLength(1)).annotations({ description: "The provider's event id" })
}).annotations({ identifier: "EventSource", description: "What gave rise to the event" })

const envelopeOf = <T extends EventType, A, I>(type: T, data: Schema.Schema<A, I>) =>
  Schema.Struct({
    id: EventId,
    type: Schema.Literal(type).annotations({ description: "The event type, which says what data holds" }),
    version: Schema.Literal(envelopeVersion).annotations({ description: "The version of the envelope" }),
    created_at: Schema.String.pipe(Schema.pattern(isoTimestamp)).annotations({
      description: "When the event happened at the provider: ISO 8601, UTC, with milliseconds"
    }),
    livemode: Schema.Boolean.annotations({ description: "False in the sandbox" }),
    organization_id: OrganizationUuid,
    source: Source,
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
