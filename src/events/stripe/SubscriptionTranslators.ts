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
 * The fields in which an invoice names its subscription: under `parent` since 2025, in a separate field before. Both
 * are read, since the payload's version depends on the notification endpoint at the provider.
 */
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

/** The translators by the provider's event type. */
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
