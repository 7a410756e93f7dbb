import { Array as Arr, Either, Schema } from "effect"
import type { EventData, EventType } from "../Catalog.ts"
import { type Envelope, type EnvelopeOf, makeEnvelope, stripeName } from "../Envelope.ts"
import type {
  EventReader,
  SoldItemsReference,
  TranslateInput,
  Translation,
  TranslationContext
} from "../EventReader.ts"
import { amount, count, currency, flag, providerCode, providerId, unixSeconds } from "../Fields.ts"
import {
  filterSubjects,
  type Malformed,
  malformed,
  malformedAt,
  orAbsent,
  type ProviderEvent,
  Reference,
  truncatedList
} from "./ProviderEvent.ts"

/**
 * Translation of the provider's events into the catalog's (contract 6.3). Pure and total: every input has an outcome,
 * and none throws.
 *
 * Two types of the catalog come from elsewhere: `milestone.first_payment` is decided when the payment is stored, and
 * `account.updated` comes from reading the account, never from a snapshot's payload, whose order is not guaranteed.
 */

type Make = <T extends EventType>(type: T, data: EventData<T>) => EnvelopeOf<T>

type Translator = (
  event: ProviderEvent,
  context: TranslationContext
) => Either.Either<ReadonlyArray<Envelope>, Malformed>

/** Why a translator refuses fields that are each valid: the paths of those that contradict each other. */
interface Contradiction {
  readonly contradicting: ReadonlyArray<string>
}

const objectPath = "event.data.object"

/** Fields that the schema does not name are never read, so they cannot reach a consumer. */
const translator = <A, I>(
  object: Schema.Schema<A, I>,
  toEvents: (object: A, make: Make, context: TranslationContext) => ReadonlyArray<Envelope> | Contradiction
): Translator => {
  const decode = Schema.decodeUnknownEither(object, { errors: "all" })
  return (event, context) => {
    const make: Make = (type, data) =>
      makeEnvelope({
        provider: stripeName,
        environment: context.environment,
        organizationId: context.organizationId,
        providerEventId: event.id,
        created: event.created,
        type,
        data
      })
    return Either.flatMap(
      Either.mapLeft(decode(event.data.object), (error) => malformed(objectPath, error)),
      (object) => {
        const made = toEvents(object, make, context)
        return "contradicting" in made
          ? Either.left(malformedAt(made.contradicting.map((path) => `${objectPath}.${path}`)))
          : Either.right(made)
      }
    )
  }
}

// `payment.*`

const paymentIntentId = providerId("The payment intent")

const ReceivedPayment = Schema.Struct({
  id: paymentIntentId,
  amount_received: amount("The amount received"),
  currency
})

const FailedPayment = Schema.Struct({
  id: paymentIntentId,
  amount: amount("The amount that should have been received"),
  currency,
  last_payment_error: orAbsent(Schema.Struct({ code: orAbsent(providerCode("Why the payment failed")) }))
})

const RefundedCharge = Schema.Struct({
  id: providerId("The charge"),
  payment_intent: orAbsent(Reference),
  amount_refunded: amount("How much has been refunded so far"),
  currency,
  refunded: flag("Whether the full amount was refunded")
})

const paymentTranslators = {
  "payment_intent.succeeded": translator(ReceivedPayment, ({ amount_received, currency, id }, make) => [
    make("payment.succeeded", { payment_id: id, amount_received, currency })
  ]),
  "payment_intent.payment_failed": translator(FailedPayment, ({ amount, currency, id, last_payment_error }, make) => [
    make("payment.failed", { payment_id: id, amount, currency, failure_code: last_payment_error?.code ?? null })
  ]),
  "charge.refunded": translator(RefundedCharge, (charge, make) => [
    make("payment.refunded", {
      charge_id: charge.id,
      payment_id: charge.payment_intent,
      amount_refunded: charge.amount_refunded,
      currency: charge.currency,
      fully_refunded: charge.refunded
    })
  ])
} satisfies Record<string, Translator>

// `dispute.*`

const Dispute = Schema.Struct({
  id: providerId("The dispute"),
  charge: Reference,
  payment_intent: orAbsent(Reference),
  amount: amount("The disputed amount"),
  currency
})

const OpenedDispute = Schema.Struct({ ...Dispute.fields, reason: providerCode("Why the payer disputes") })

const ClosedDispute = Schema.Struct({ ...Dispute.fields, status: providerCode("How the dispute ended") })

const disputeFields = (dispute: typeof Dispute.Type) => ({
  dispute_id: dispute.id,
  charge_id: dispute.charge,
  payment_id: dispute.payment_intent,
  amount: dispute.amount,
  currency: dispute.currency
})

const disputeTranslators = {
  "charge.dispute.created": translator(OpenedDispute, (dispute, make) => [
    make("dispute.created", { ...disputeFields(dispute), reason: dispute.reason })
  ]),
  "charge.dispute.closed": translator(ClosedDispute, (dispute, make) => [
    make("dispute.closed", { ...disputeFields(dispute), status: dispute.status })
  ])
} satisfies Record<string, Translator>

// `payout.*`

const Payout = Schema.Struct({ id: providerId("The payout"), amount: amount("The payout's amount"), currency })

const arrival = { arrival_date: unixSeconds("When the money is expected at the bank") }

const PaidPayout = Schema.Struct({ ...Payout.fields, ...arrival })

const FailedPayout = Schema.Struct({ ...Payout.fields, failure_code: orAbsent(providerCode("Why it failed")) })

const PayoutWithStatus = Schema.Struct({
  ...Payout.fields,
  ...arrival,
  status: providerCode("The payout's status"),
  automatic: flag("Whether the payout schedule created it")
})

const payoutFields = (payout: typeof Payout.Type) => ({
  payout_id: payout.id,
  amount: payout.amount,
  currency: payout.currency
})

const statusTranslator = (type: "payout.created" | "payout.updated"): Translator =>
  translator(PayoutWithStatus, (payout, make) => [
    make(type, {
      ...payoutFields(payout),
      status: payout.status,
      arrival_date: payout.arrival_date,
      automatic: payout.automatic
    })
  ])

const payoutTranslators = {
  "payout.paid": translator(PaidPayout, (payout, make) => [
    make("payout.paid", { ...payoutFields(payout), arrival_date: payout.arrival_date })
  ]),
  "payout.failed": translator(FailedPayout, (payout, make) => [
    make("payout.failed", { ...payoutFields(payout), failure_code: payout.failure_code })
  ]),
  "payout.created": statusTranslator("payout.created"),
  "payout.updated": statusTranslator("payout.updated"),
  "payout.canceled": translator(Payout, (payout, make) => [make("payout.canceled", payoutFields(payout))])
} satisfies Record<string, Translator>

// `subscription.*`

const Subscription = Schema.Struct({
  id: providerId("The subscription"),
  customer: Reference,
  status: providerCode("The subscription's status")
})

const subscriptionTranslator = (type: "subscription.created" | "subscription.canceled"): Translator =>
  translator(Subscription, ({ customer, id, status }, make) => [
    make(type, { subscription_id: id, customer_id: customer, status })
  ])

/** Under `parent` since 2025, in a separate field before: the webhook endpoint at the provider sets the API version. */
const InvoiceOwner = Schema.Struct({
  id: providerId("The invoice"),
  billing_reason: Schema.optional(Schema.NullOr(providerCode("Why the invoice was created"))),
  currency,
  parent: orAbsent(Schema.Struct({ subscription_details: orAbsent(Schema.Struct({ subscription: Reference })) })),
  subscription: orAbsent(Reference)
})

/** The subscription that an invoice is for; null for other invoices. */
const subscriptionOf = ({ parent, subscription }: typeof InvoiceOwner.Type): string | null =>
  parent?.subscription_details?.subscription ?? subscription

/**
 * The subscription of an invoice, or a contradiction: if the billing reason names a subscription but none is found, the
 * provider may have moved the field. That must not count as an invoice without a subscription, or a renewal would be
 * lost.
 */
const ownerOf = (invoice: typeof InvoiceOwner.Type): string | null | Contradiction => {
  const subscription = subscriptionOf(invoice)
  const isOfSubscription = invoice.billing_reason?.startsWith("subscription") === true
  return subscription === null && isOfSubscription ? { contradicting: ["parent", "billing_reason"] } : subscription
}

/** The reasons of invoices that are not a renewal, such as the first one of a subscription or a manual one. */
const otherReasons: ReadonlySet<string | null> = new Set([
  null,
  "automatic_pending_invoice_item_invoice",
  "manual",
  "quote_accept",
  "subscription",
  "subscription_create",
  "subscription_threshold",
  "subscription_update",
  "upcoming"
])

/** Whether a subscription's invoice renews it; an unknown reason may be a new name for renewals. */
const isRenewal = ({ billing_reason: reason }: typeof InvoiceOwner.Type): boolean | Contradiction => {
  if (reason === "subscription_cycle") return true
  return reason === undefined || !otherReasons.has(reason) ? { contradicting: ["billing_reason"] } : false
}

const PaidInvoice = Schema.Struct({ ...InvoiceOwner.fields, amount_paid: amount("What was paid") })

const FailedInvoice = Schema.Struct({
  ...InvoiceOwner.fields,
  amount_due: amount("What is due"),
  attempt_count: count("How often payment was tried")
})

const subscriptionTranslators = {
  "customer.subscription.created": subscriptionTranslator("subscription.created"),
  "customer.subscription.deleted": subscriptionTranslator("subscription.canceled"),
  "invoice.paid": translator(PaidInvoice, (invoice, make) => {
    const owner = ownerOf(invoice)
    if (owner === null) return []
    if (typeof owner !== "string") return owner
    const renewal = isRenewal(invoice)
    if (typeof renewal !== "boolean") return renewal
    return renewal
      ? [
          make("subscription.renewed", {
            subscription_id: owner,
            invoice_id: invoice.id,
            amount_paid: invoice.amount_paid,
            currency: invoice.currency
          })
        ]
      : []
  }),
  "invoice.payment_failed": translator(FailedInvoice, (invoice, make) => {
    const owner = ownerOf(invoice)
    if (owner === null) return []
    return typeof owner === "string"
      ? [
          make("subscription.payment_failed", {
            subscription_id: owner,
            invoice_id: invoice.id,
            amount_due: invoice.amount_due,
            currency: invoice.currency,
            attempt_count: invoice.attempt_count
          })
        ]
      : owner
  })
} satisfies Record<string, Translator>

// `checkout.*`

const CheckoutSession = Schema.Struct({
  id: providerId("The session"),
  mode: providerCode("What the session is for"),
  payment_status: providerCode("Whether the money was received"),
  payment_intent: orAbsent(Reference),
  subscription: orAbsent(Reference),
  amount_total: orAbsent(amount("The total")),
  currency: orAbsent(currency)
})

const checkoutTranslator = (
  type: "checkout.completed" | "checkout.payment_succeeded" | "checkout.payment_failed"
): Translator =>
  translator(CheckoutSession, (session, make, { soldItems }) => [
    make(type, {
      session_id: session.id,
      mode: session.mode,
      payment_status: session.payment_status,
      payment_id: session.payment_intent,
      subscription_id: session.subscription,
      amount_total: session.amount_total,
      currency: session.currency,
      price_ids: soldItems?.priceIds ?? null,
      product_ids: soldItems?.productIds ?? null
    })
  ])

const checkoutTranslators = {
  "checkout.session.completed": checkoutTranslator("checkout.completed"),
  "checkout.session.async_payment_succeeded": checkoutTranslator("checkout.payment_succeeded"),
  "checkout.session.async_payment_failed": checkoutTranslator("checkout.payment_failed")
} satisfies Record<string, Translator>

/** The translators by the provider's types (contract 6.3). */
const translators: Readonly<Record<string, Translator>> = {
  ...paymentTranslators,
  ...disputeTranslators,
  ...checkoutTranslators,
  ...subscriptionTranslators,
  ...payoutTranslators
}

const decodeReference = Schema.decodeUnknownEither(
  Schema.Struct({ id: providerId("The session"), payment_link: orAbsent(Reference) })
)

/** Null if the event is not about a checkout session, or is malformed. */
export const soldItemsReference = (event: ProviderEvent): SoldItemsReference | null => {
  if (!Object.hasOwn(checkoutTranslators, event.type)) return null
  return Either.match(decodeReference(event.data.object), {
    onLeft: () => null,
    onRight: ({ id, payment_link }) => ({ sessionId: id, paymentLinkId: payment_link })
  })
}

export const translatedProviderTypes: ReadonlyArray<string> = Object.keys(translators)

export const translate = ({ event, ...context }: TranslateInput): Translation => {
  if (event.livemode !== (context.environment === "production")) return { _tag: "WrongMode" }
  // Own keys only: a type named like a member of Object.prototype must not match
  const translator = Object.hasOwn(translators, event.type) ? translators[event.type] : undefined
  if (translator === undefined) return { _tag: "Ignored" }
  return Either.match(translator(event, context), {
    onLeft: (malformed): Translation => malformed,
    onRight: (events) => (Arr.isNonEmptyReadonlyArray(events) ? { _tag: "Translated", events } : { _tag: "Ignored" })
  })
}

/** The provider's event types for a changed refund; the API version decides which of them it sends. */
export const refundUpdateTypes: ReadonlyArray<string> = ["refund.failed", "refund.updated", "charge.refund.updated"]

const topics: Readonly<Record<string, ReturnType<EventReader["topicOf"]>>> = {
  "account.updated": "account",
  "account.application.deauthorized": "deauthorization",
  ...Object.fromEntries(refundUpdateTypes.map((type) => [type, "refund"]))
}

export const stripeReader: EventReader = {
  concerns: (type) => Object.hasOwn(translators, type) || refundUpdateTypes.includes(type),
  topicOf: (type) => (Object.hasOwn(topics, type) ? topics[type] : undefined) ?? "other",
  soldItemsReference,
  translate,
  truncatedList,
  filterSubjects
}
