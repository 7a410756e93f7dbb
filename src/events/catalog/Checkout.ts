import { Schema } from "effect"
import { eventType, type Fictitious } from "../EventDefinition.ts"
import { amount, currency, providerCode, providerId } from "../Fields.ts"

const CheckoutData = Schema.Struct({
  session_id: providerId("The provider's id of the checkout session"),
  mode: providerCode("What the session is for: payment, subscription or setup"),
  payment_status: providerCode(
    "Only paid confirms that the money was received; others are unpaid, no_payment_required"
  ),
  payment_id: Schema.NullOr(providerId("The payment (payment intent); null for subscriptions and free orders")),
  subscription_id: Schema.NullOr(providerId("The subscription; null unless the session is for one")),
  amount_total: Schema.NullOr(amount("The total after discounts and taxes")),
  currency: Schema.NullOr(currency),
  price_ids: Schema.NullOr(
    Schema.Array(providerId("A price")).annotations({
      description: "The prices that the session sells; null if this service did not create it"
    })
  ),
  product_ids: Schema.NullOr(
    Schema.Array(providerId("A product")).annotations({
      description: "The products that the session sells; null if this service did not create it"
    })
  )
}).annotations({ identifier: "CheckoutData", description: "A checkout session and what it sells" })

const session = ({ id }: Fictitious, paymentStatus: "paid" | "unpaid") => ({
  session_id: id("cs"),
  mode: "payment",
  payment_status: paymentStatus,
  payment_id: id("pi"),
  subscription_id: null,
  amount_total: 1500,
  currency: "brl",
  price_ids: [id("price")],
  product_ids: [id("prod")]
})

export const checkoutEvents = [
  eventType("checkout.completed", {
    items: true,
    description: "A checkout session was completed. It confirms payment only if payment_status is paid.",
    data: CheckoutData,
    sample: (fictitious) => session(fictitious, "paid")
  }),
  eventType("checkout.payment_succeeded", {
    items: true,
    description: "The delayed payment of a completed checkout session was received.",
    data: CheckoutData,
    sample: (fictitious) => session(fictitious, "paid")
  }),
  eventType("checkout.payment_failed", {
    items: true,
    description: "The delayed payment of a completed checkout session failed.",
    data: CheckoutData,
    sample: (fictitious) => session(fictitious, "unpaid")
  })
] as const
