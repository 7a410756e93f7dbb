/** `payment.*` (contract 6.3). */
import { Schema } from "effect"
import { amount, currency, flag, providerCode, providerId } from "../Fields.ts"
import { orAbsent, Reference } from "./ProviderEvent.ts"
import { type Translator, translator } from "./Translator.ts"

const paymentIntentId = providerId("The payment intent")

const ReceivedPayment = Schema.Struct({
  id: paymentIntentId,
  amount_received: amount("What was received"),
  currency
})

const FailedPayment = Schema.Struct({
  id: paymentIntentId,
  amount: amount("What should have been received"),
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

/** The translators by the provider's event type. */
export const paymentTranslators = {
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
