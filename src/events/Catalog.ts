import { Schema } from "effect"
import { familiar } from "../platform/bounds/Rules.ts"
import { accountEvents } from "./catalog/Account.ts"
import { checkoutEvents } from "./catalog/Checkout.ts"
import { disputeEvents } from "./catalog/Disputes.ts"
import { milestoneEvents, paymentEvents } from "./catalog/Payments.ts"
import { payoutEvents } from "./catalog/Payouts.ts"
import { subscriptionEvents } from "./catalog/Subscriptions.ts"

/**
 * The catalog of event types and the `data` of each (contract 6.3): the types that a consumer may subscribe to, and
 * exactly the fields that it receives. None contains personal data, card data, client secrets or metadata.
 *
 * A type is defined once, in `catalog/`. Everything else derives from it: types, schemas of events, published JSON
 * Schemas, synthetic events, the event reference, and the types of the consumer's kit, which `npm run docs` writes.
 */

const catalog = [
  ...paymentEvents,
  ...disputeEvents,
  ...checkoutEvents,
  ...subscriptionEvents,
  ...payoutEvents,
  ...milestoneEvents,
  ...accountEvents
] as const

type Catalog = typeof catalog

type Definition = Catalog[number]

type Each<Definitions extends ReadonlyArray<Definition>, Part extends keyof Definition> = {
  readonly [I in keyof Definitions]: Definitions[I][Part]
}

function each<const Part extends keyof Definition>(part: Part): Each<Catalog, Part>
function each(part: keyof Definition): ReadonlyArray<unknown> {
  return catalog.map((definition) => definition[part])
}

type ByType<Part extends keyof Definition> = { readonly [D in Definition as D["type"]]: D[Part] }

function byType<const Part extends keyof Definition>(part: Part): ByType<Part>
function byType(part: keyof Definition): Readonly<Record<string, unknown>> {
  return Object.fromEntries(catalog.map((definition) => [definition.type, definition[part]]))
}

export const EventType = Schema.Literal(...each("type")).annotations({
  identifier: "EventType",
  description: "An event type of the catalog",
  // The provider's names; a refusal finds those that share their words with ours by itself
  ...familiar({
    "charge.refunded": "did you mean payment.refunded?",
    "charge.succeeded": "did you mean payment.succeeded?",
    "customer.subscription.deleted": "did you mean subscription.canceled?",
    "invoice.paid": "did you mean subscription.renewed?",
    "invoice.payment_failed": "did you mean subscription.payment_failed?"
  })
})

export type EventType = typeof EventType.Type

export const eventData = byType("data")

export type EventData<T extends EventType> = Schema.Schema.Type<(typeof eventData)[T]>

const envelopes = each("envelope")

export const envelopeByType = byType("envelope")

export const eventSubjects = byType("subjects")

export const fictitious = byType("fictitious")

/** Every type with a sentence about it, in the catalog's order, as the list of endpoints shows them. */
export const eventTypes: ReadonlyArray<{ readonly type: EventType; readonly description: string }> = catalog.map(
  ({ description, type }) => ({ type, description })
)

/** The schema of every event (contract 6.1); `type` determines `data`. */
export const Envelope = Schema.Union(...envelopes).annotations({
  identifier: "Event",
  description: "A signed event, told apart by its type"
})

export type Envelope = typeof Envelope.Type
