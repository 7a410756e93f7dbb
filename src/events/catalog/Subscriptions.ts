import { Schema } from "effect"
import { eventType, type Fictitious } from "../EventDefinition.ts"
import { amount, count, currency, providerCode, providerId } from "../Fields.ts"

const subscriptionId = providerId("The provider's id of the subscription")
const invoiceId = providerId("The provider's id of the invoice")

const SubscriptionData = Schema.Struct({
  subscription_id: subscriptionId,
  customer_id: providerId("The provider's id of the customer who subscribed"),
  status: providerCode("The subscription's status, in the provider's words, e.g. active")
}).annotations({ identifier: "SubscriptionData", description: "A subscription and its status" })

const SubscriptionRenewedData = Schema.Struct({
  subscription_id: subscriptionId,
  invoice_id: invoiceId,
  amount_paid: amount("The amount paid on the invoice"),
  currency
}).annotations({ identifier: "SubscriptionRenewedData", description: "A renewal that was paid" })

const SubscriptionPaymentFailedData = Schema.Struct({
  subscription_id: subscriptionId,
  invoice_id: invoiceId,
  amount_due: amount("The amount due on the invoice"),
  currency,
  attempt_count: count("How often payment was tried so far")
}).annotations({ identifier: "SubscriptionPaymentFailedData", description: "An invoice whose payment failed" })

const subscription = ({ id }: Fictitious, status: string) => ({
  subscription_id: id("sub"),
  customer_id: id("cus"),
  status
})

export const subscriptionEvents = [
  eventType("subscription.created", {
    items: true,
    description: "A subscription was created.",
    data: SubscriptionData,
    sample: (fictitious) => subscription(fictitious, "active")
  }),
  eventType("subscription.renewed", {
    items: true,
    description: "The invoice of a subscription's new period was paid.",
    data: SubscriptionRenewedData,
    sample: ({ id }) => ({ subscription_id: id("sub"), invoice_id: id("in"), amount_paid: 1500, currency: "brl" })
  }),
  eventType("subscription.canceled", {
    items: true,
    description: "A subscription has ended.",
    data: SubscriptionData,
    sample: (fictitious) => subscription(fictitious, "canceled")
  }),
  eventType("subscription.payment_failed", {
    items: true,
    description: "The payment of a subscription's invoice failed.",
    data: SubscriptionPaymentFailedData,
    sample: ({ id }) => ({
      subscription_id: id("sub"),
      invoice_id: id("in"),
      amount_due: 1500,
      currency: "brl",
      attempt_count: 1
    })
  })
] as const
