import { Schema } from "effect"
import { eventType, type Fictitious } from "../EventDefinition.ts"
import { amount, currency, flag, providerCode, providerId } from "../Fields.ts"

const paymentId = providerId("The provider's id of the payment (payment intent): guard the effect by it")

const PaymentSucceededData = Schema.Struct({
  payment_id: paymentId,
  amount_received: amount("The amount received"),
  currency
}).annotations({ identifier: "PaymentSucceededData", description: "A payment that was received" })

const PaymentFailedData = Schema.Struct({
  payment_id: paymentId,
  amount: amount("The amount that should have been received"),
  currency,
  failure_code: Schema.NullOr(providerCode("The provider's error code; null if the payment carries no error"))
}).annotations({ identifier: "PaymentFailedData", description: "An attempt to pay that failed" })

const PaymentRefundedData = Schema.Struct({
  charge_id: providerId("The provider's id of the charge that was refunded"),
  payment_id: Schema.NullOr(paymentId),
  amount_refunded: amount("How much of the charge has been refunded so far"),
  currency,
  fully_refunded: flag("Whether the full amount was refunded")
}).annotations({
  identifier: "PaymentRefundedData",
  description: "A charge that was refunded in part or in full, or an authorization that was given up uncaptured"
})

const received = ({ id }: Fictitious) => ({ payment_id: id("pi"), amount_received: 1500, currency: "brl" })

export const paymentEvents = [
  eventType("payment.succeeded", {
    description: "A payment was received. This is the financial confirmation of a payment.",
    data: PaymentSucceededData,
    sample: received
  }),
  eventType("payment.failed", {
    description: "An attempt to pay failed.",
    data: PaymentFailedData,
    sample: ({ id }) => ({ payment_id: id("pi"), amount: 1500, currency: "brl", failure_code: "card_declined" })
  }),
  eventType("payment.refunded", {
    description: "Some or all of a charge was refunded.",
    data: PaymentRefundedData,
    sample: ({ id }) => ({
      charge_id: id("ch"),
      payment_id: id("pi"),
      amount_refunded: 1500,
      currency: "brl",
      fully_refunded: true
    })
  })
] as const

export const milestoneEvents = [
  eventType("milestone.first_payment", {
    description: "The account received its first payment; sent once, together with its payment.succeeded.",
    data: PaymentSucceededData,
    sample: received
  })
] as const
