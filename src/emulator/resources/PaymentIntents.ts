import { Schema } from "effect"
import { newClientSecret, newId } from "../Ids.ts"
import { existingOf, listRoute, pageParams, retrieveRoute } from "../Lists.ts"
import * as Params from "../Params.ts"
import type { PaymentIntent, PaymentIntentData } from "../Records.ts"
import type { Route } from "../Route.ts"

export interface PaymentTerms {
  readonly amount: number
  readonly currency: string
  readonly created: number
  readonly data: PaymentIntentData
}

/** A payment intent that waits for a payment method. */
export const makePaymentIntent = ({ amount, created, currency, data }: PaymentTerms): PaymentIntent => {
  const id = newId("pi_")
  return {
    id,
    object: "payment_intent",
    allowed_payment_method_types: null,
    amount,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: 0,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: "automatic_async",
    client_secret: newClientSecret(id),
    confirmation_method: "automatic",
    created,
    currency,
    customer: null,
    customer_account: null,
    description: data.description,
    excluded_payment_method_types: null,
    last_payment_error: null,
    latest_charge: null,
    livemode: false,
    managed_payments: null,
    metadata: data.metadata,
    next_action: null,
    on_behalf_of: null,
    payment_method: null,
    payment_method_configuration_details: null,
    payment_method_options: {
      card: { installments: null, mandate_options: null, network: null, request_three_d_secure: "automatic" }
    },
    payment_method_types: ["card"],
    payment_record: null,
    processing: null,
    receipt_email: data.receiptEmail,
    review: null,
    setup_future_usage: null,
    shipping: null,
    source: null,
    statement_descriptor: data.statementDescriptor,
    statement_descriptor_suffix: data.statementDescriptorSuffix,
    status: "requires_payment_method",
    transfer_data: null,
    transfer_group: null
  }
}

/** `/v1/payment_intents`: retrieve and list; checkout creates them. */
export const paymentIntentRoutes: ReadonlyArray<Route> = [
  listRoute({
    path: "/v1/payment_intents",
    kind: "payment_intent",
    params: Schema.Struct({ ...pageParams, created: Params.optional(Params.range) }),
    matches: ({ created }, params) => Params.inRange(created, params.created)
  }),
  retrieveRoute("/v1/payment_intents/:id", "payment_intent", existingOf("payment_intent"))
]
