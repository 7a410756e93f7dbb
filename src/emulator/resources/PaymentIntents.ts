import { Schema } from "effect"
import { pageParams } from "../api/Lists.ts"
import * as Params from "../api/Params.ts"
import type { RequestContext, Route } from "../api/Route.ts"
import { newClientSecret, newId } from "../Ids.ts"
import type { PaymentIntent, PaymentIntentData } from "../Records.ts"
import { resource } from "./Resource.ts"

interface PaymentTerms {
  readonly amount: number
  readonly currency: string
  readonly customer?: string
  readonly data?: Partial<PaymentIntentData>
}

/** Creates a payment intent that waits for a payment method. Event: `payment_intent.created`. */
export const createPaymentIntent = (
  context: RequestContext,
  { amount, currency, customer, data = {} }: PaymentTerms
): PaymentIntent => {
  const id = newId("pi_")
  const intent: PaymentIntent = {
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
    created: context.now,
    currency,
    customer: customer ?? null,
    customer_account: null,
    description: data.description ?? null,
    excluded_payment_method_types: null,
    last_payment_error: null,
    latest_charge: null,
    livemode: false,
    managed_payments: null,
    metadata: data.metadata ?? {},
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
    receipt_email: data.receiptEmail ?? null,
    review: null,
    setup_future_usage: null,
    shipping: null,
    source: null,
    statement_descriptor: data.statementDescriptor ?? null,
    statement_descriptor_suffix: data.statementDescriptorSuffix ?? null,
    status: "requires_payment_method",
    transfer_data: null,
    transfer_group: null
  }
  context.save("payment_intent", intent, "payment_intent.created")
  return intent
}

const intents = resource("/v1/payment_intents", "payment_intent")

/** `/v1/payment_intents`: retrieve and list; checkout creates them. */
export const paymentIntentRoutes: ReadonlyArray<Route> = [
  intents.list(Schema.Struct({ ...pageParams, created: Params.optional(Params.range) }), { fields: ["created"] }),
  intents.get
]
