/**
 * Provider events for tests, built by hand after the shapes that the provider documents: with the personal data, secrets
 * and metadata that real ones carry, each marked so that a test can look for it in what comes out.
 */

/** Part of every value that must never reach a consumer. */
export const secretMark = "LEAK"

/** Fields of the kind that real objects carry and consumers must not see. */
export const privateFields = {
  client_secret: `pi_1_secret_${secretMark}`,
  metadata: { order: secretMark, [secretMark]: "key" },
  receipt_email: `${secretMark}@example.com`,
  billing_details: { name: secretMark, email: null, address: { line1: secretMark } },
  customer_details: { email: `${secretMark}@example.com`, name: secretMark },
  payment_method_details: { card: { last4: secretMark, brand: secretMark } },
  description: secretMark,
  url: `https://checkout.example.com/${secretMark}`
}

export const paymentIntent = {
  ...privateFields,
  id: "pi_1",
  object: "payment_intent",
  amount: 1500,
  amount_received: 1500,
  currency: "brl",
  customer: "cus_1",
  last_payment_error: null,
  latest_charge: "ch_1",
  livemode: false,
  status: "succeeded"
}

export const failedPaymentIntent = {
  ...paymentIntent,
  amount_received: 0,
  status: "requires_payment_method",
  last_payment_error: {
    code: "card_declined",
    decline_code: secretMark,
    message: secretMark,
    type: "card_error",
    payment_method: { id: secretMark, billing_details: { email: secretMark } }
  }
}

export const charge = {
  ...privateFields,
  id: "ch_1",
  object: "charge",
  amount: 1500,
  amount_refunded: 500,
  currency: "brl",
  payment_intent: "pi_1",
  refunded: false,
  status: "succeeded"
}

export const checkoutSession = {
  ...privateFields,
  id: "cs_test_1",
  object: "checkout.session",
  amount_subtotal: 1500,
  amount_total: 1500,
  client_reference_id: secretMark,
  currency: "brl",
  mode: "payment",
  payment_intent: "pi_1",
  payment_link: null,
  payment_status: "paid",
  status: "complete",
  subscription: null
}

export const dispute = {
  ...privateFields,
  id: "dp_1",
  object: "dispute",
  amount: 1500,
  charge: "ch_1",
  currency: "brl",
  evidence: { customer_name: secretMark },
  payment_intent: "pi_1",
  reason: "fraudulent",
  status: "lost"
}

export const subscription = {
  ...privateFields,
  id: "sub_1",
  object: "subscription",
  currency: "brl",
  customer: "cus_1",
  items: { object: "list", data: [{ id: "si_1", price: { id: "price_1", product: "prod_1" } }], has_more: false },
  status: "active"
}

/** As since 2025: the subscription is named under `parent`, price and product under each line's `pricing`. */
export const invoice = {
  ...privateFields,
  id: "in_1",
  object: "invoice",
  amount_due: 1500,
  amount_paid: 1500,
  attempt_count: 2,
  billing_reason: "subscription_cycle",
  currency: "brl",
  customer_email: `${secretMark}@example.com`,
  lines: {
    object: "list",
    data: [{ id: "il_1", pricing: { price_details: { price: "price_1", product: "prod_1" } } }],
    has_more: false
  },
  parent: { type: "subscription_details", subscription_details: { subscription: "sub_1", metadata: {} } }
}

export const payout = {
  ...privateFields,
  id: "po_1",
  object: "payout",
  amount: 1500,
  arrival_date: 1_767_225_600,
  automatic: true,
  currency: "brl",
  destination: { account_holder_name: secretMark },
  failure_code: null,
  status: "in_transit"
}

export const snapshot = (type: string, object: unknown, overrides: object = {}): unknown => ({
  id: "evt_1Q0",
  object: "event",
  account: "acct_1",
  api_version: "2026-10-28.endive",
  created: 1_760_000_000,
  data: { object, previous_attributes: { metadata: { order: secretMark } } },
  livemode: false,
  pending_webhooks: 1,
  request: { id: "req_1", idempotency_key: secretMark },
  type,
  ...overrides
})
