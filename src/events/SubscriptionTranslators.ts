/** `subscription.*` (contract, Events, Catalog). */
import { Schema } from "effect"
import { amount, count, currency, providerCode, providerId } from "./Fields.ts"
import { orAbsent, Reference } from "./ProviderEvent.ts"
import { type Translator, translator } from "./Translator.ts"

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
  billing_reason: orAbsent(providerCode("Why the invoice was made")),
  currency,
  parent: orAbsent(Schema.Struct({ subscription_details: orAbsent(Schema.Struct({ subscription: Reference })) })),
  subscription: orAbsent(Reference)
})

/** The subscription that an invoice is for; null for one that is no subscription's. */
const subscriptionOf = ({ parent, subscription }: typeof InvoiceOwner.Type): string | null =>
  parent?.subscription_details?.subscription ?? subscription

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
    const subscription = subscriptionOf(invoice)
    // The first invoice of a subscription, or one made by hand, is no renewal
    return subscription === null || invoice.billing_reason !== "subscription_cycle"
      ? []
      : [
          make("subscription.renewed", {
            subscription_id: subscription,
            invoice_id: invoice.id,
            amount_paid: invoice.amount_paid,
            currency: invoice.currency
          })
        ]
  }),
  "invoice.payment_failed": translator(FailedInvoice, (invoice, make) => {
    const subscription = subscriptionOf(invoice)
    return subscription === null
      ? []
      : [
          make("subscription.payment_failed", {
            subscription_id: subscription,
            invoice_id: invoice.id,
            amount_due: invoice.amount_due,
            currency: invoice.currency,
            attempt_count: invoice.attempt_count
          })
        ]
  })
} satisfies Record<string, Translator>
