/** `subscription.*` (contract 6.3). */
import { Schema } from "effect"
import { amount, count, currency, providerCode, providerId } from "../Fields.ts"
import { orAbsent, Reference } from "./ProviderEvent.ts"
import { type Contradiction, type Translator, translator } from "./Translator.ts"

const Subscription = Schema.Struct({
  id: providerId("The subscription"),
  customer: Reference,
  status: providerCode("The subscription's status")
})

const subscriptionTranslator = (type: "subscription.created" | "subscription.canceled"): Translator =>
  translator(Subscription, ({ customer, id, status }, make) => [
    make(type, { subscription_id: id, customer_id: customer, status })
  ])

/**
 * Where an invoice says whose it is: under `parent` since 2025, in a field of its own before. Both are read, since the
 * payload's generation is the notification endpoint's at the provider.
 */
const InvoiceOwner = Schema.Struct({
  id: providerId("The invoice"),
  billing_reason: Schema.optional(Schema.NullOr(providerCode("Why the invoice was made"))),
  currency,
  parent: orAbsent(Schema.Struct({ subscription_details: orAbsent(Schema.Struct({ subscription: Reference })) })),
  subscription: orAbsent(Reference)
})

/** The subscription that an invoice is for; null for one that is no subscription's. */
const subscriptionOf = ({ parent, subscription }: typeof InvoiceOwner.Type): string | null =>
  parent?.subscription_details?.subscription ?? subscription

/**
 * Where the subscription and the reason contradict each other, the provider says one of them elsewhere by now. That must
 * not pass for an invoice that is no subscription's: a renewal would go untold.
 */
const ownerOf = (invoice: typeof InvoiceOwner.Type): string | null | Contradiction => {
  const subscription = subscriptionOf(invoice)
  const isOfSubscription = invoice.billing_reason?.startsWith("subscription") === true
  return subscription === null && isOfSubscription ? { contradicting: ["parent", "billing_reason"] } : subscription
}

/** Why the provider makes invoices that are no renewal: the first one of a subscription, or one made by hand. */
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

/** Whether a subscription's invoice renews it; a reason that is not known may be the renewal's new name. */
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

/** By the provider's event type. */
export const subscriptionTranslators = {
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
