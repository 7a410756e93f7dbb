/**
 * Examples of the main flow for the OpenAPI document and its page. Ids are fictitious; everything else works unchanged.
 */

/** The request and the answer of one operation, as JSON. */
export interface OperationExample {
  readonly request?: unknown
  readonly answer?: unknown
}

const created = 1_790_000_000

const product = {
  id: "prod_Q1w2E3r4T5y6",
  object: "product",
  active: true,
  created,
  default_price: null,
  description: null,
  images: [],
  livemode: false,
  metadata: {},
  name: "Coffee beans, 1 kg",
  updated: created,
  url: null
}

const price = {
  id: "price_1Q2w3E4r5T6y7U",
  object: "price",
  active: true,
  billing_scheme: "per_unit",
  created,
  currency: "brl",
  livemode: false,
  metadata: {},
  nickname: null,
  product: product.id,
  recurring: null,
  type: "one_time",
  unit_amount: 1500
}

const session = {
  id: "cs_test_a1B2c3D4e5F6",
  object: "checkout.session",
  amount_total: 3000,
  client_reference_id: "order-4711",
  created,
  currency: "brl",
  livemode: false,
  metadata: {},
  mode: "payment",
  payment_intent: null,
  payment_status: "unpaid",
  status: "open",
  subscription: null,
  url: "https://checkout.example/c/pay/cs_test_a1B2c3D4e5F6"
}

const paidSession = {
  ...session,
  payment_intent: "pi_3Q1w2E3r4T5y6U",
  payment_status: "paid",
  status: "complete",
  url: null
}

const paymentIntent = {
  id: paidSession.payment_intent,
  object: "payment_intent",
  amount: 3000,
  amount_received: 3000,
  created,
  currency: "brl",
  latest_charge: "ch_3Q1w2E3r4T5y6U",
  livemode: false,
  metadata: {},
  status: "succeeded"
}

const charge = {
  id: paymentIntent.latest_charge,
  object: "charge",
  amount: 3000,
  amount_refunded: 0,
  created,
  currency: "brl",
  livemode: false,
  metadata: {},
  paid: true,
  payment_intent: paymentIntent.id,
  refunded: false,
  status: "succeeded"
}

const refund = {
  id: "re_3Q1w2E3r4T5y6U",
  object: "refund",
  amount: 1500,
  charge: charge.id,
  created,
  currency: "brl",
  metadata: {},
  payment_intent: paymentIntent.id,
  reason: "requested_by_customer",
  status: "succeeded"
}

const coupon = {
  id: "Q1w2E3r4",
  object: "coupon",
  amount_off: null,
  created,
  currency: null,
  duration: "once",
  duration_in_months: null,
  percent_off: 25,
  valid: true
}

const promotionCode = {
  id: "promo_1Q2w3E4r5T6y7U",
  object: "promotion_code",
  active: true,
  code: "SUMMER25",
  coupon,
  created,
  expires_at: null,
  livemode: false,
  max_redemptions: 100,
  metadata: {},
  times_redeemed: 0
}

const paymentLink = {
  id: "plink_1Q2w3E4r5T6y7U",
  object: "payment_link",
  active: true,
  currency: "brl",
  livemode: false,
  metadata: {},
  url: "https://checkout.example/l/plink_1Q2w3E4r5T6y7U"
}

const endpoint = {
  id: "0199c0de-0000-7000-8000-000000000010",
  name: "Shop",
  url: "https://example.com/webhooks",
  environment: "sandbox",
  events: ["payment.succeeded", "payment.refunded"],
  filters: { currencies: ["brl"] },
  active: true,
  createdAt: "2026-09-21T14:13:20.000Z",
  updatedAt: "2026-09-21T14:13:20.000Z",
  previousSecretExpiresAt: null
}

const delivery = {
  id: "0199c0de-0000-7000-8000-000000000011",
  endpointId: endpoint.id,
  eventId: `svc_evt_${"0123456789abcdef".repeat(4)}`,
  type: "payment.succeeded",
  state: "delivered",
  test: false,
  attemptCount: 1,
  nextAttemptAt: null,
  createdAt: "2026-09-21T14:15:00.000Z",
  finishedAt: "2026-09-21T14:15:00.180Z",
  lastHttpStatus: 204,
  lastErrorCode: null
}

const pageOf = (item: object) => ({ data: [item], has_more: false })

/**
 * The examples by group and operation, such as `products.create`; a test checks each against the operation's schemas.
 */
export const operationExamples: Readonly<Record<string, OperationExample>> = {
  "products.create": { request: { name: product.name }, answer: product },
  "products.list": { answer: pageOf(product) },
  "products.get": { answer: product },
  "products.update": { request: { name: "Coffee beans, 500 g" }, answer: { ...product, name: "Coffee beans, 500 g" } },
  "prices.create": {
    request: { currency: "brl", unit_amount: 1500, product_data: { name: product.name } },
    answer: price
  },
  "prices.list": { answer: pageOf(price) },
  "prices.get": { answer: price },
  "checkoutSessions.create": {
    request: {
      mode: "payment",
      line_items: [{ price: price.id, quantity: 2 }],
      client_reference_id: session.client_reference_id
    },
    answer: session
  },
  "checkoutSessions.list": { answer: pageOf(paidSession) },
  "checkoutSessions.get": { answer: paidSession },
  "promotionCodes.create": {
    request: { code: "SUMMER25", discount: { percent_off: 25 }, duration: "once", max_redemptions: 100 },
    answer: promotionCode
  },
  "promotionCodes.list": { answer: pageOf(promotionCode) },
  "promotionCodes.get": { answer: promotionCode },
  "promotionCodes.update": { request: { active: false }, answer: { ...promotionCode, active: false } },
  "paymentLinks.create": {
    request: {
      line_items: [{ price: price.id, quantity: 1 }],
      restrictions: { completed_sessions: { limit: 100 } }
    },
    answer: paymentLink
  },
  "paymentLinks.list": { answer: pageOf(paymentLink) },
  "paymentLinks.get": { answer: paymentLink },
  "paymentLinks.update": { request: { active: false }, answer: { ...paymentLink, active: false } },
  "charges.list": { answer: pageOf(charge) },
  "charges.get": { answer: charge },
  "paymentIntents.list": { answer: pageOf(paymentIntent) },
  "paymentIntents.get": { answer: paymentIntent },
  "refunds.create": {
    request: { payment_intent: paymentIntent.id, amount: 1500, reason: "requested_by_customer" },
    answer: refund
  },
  "endpoints.list": {
    answer: {
      data: [{ ...endpoint, recentFailures: 0 }],
      eventTypes: [{ type: "payment.succeeded", description: "A payment was received." }]
    }
  },
  "endpoints.create": {
    request: { name: endpoint.name, url: endpoint.url, events: endpoint.events, filters: endpoint.filters },
    answer: { ...endpoint, signingSecret: "whsec_shown-this-once" }
  },
  "endpoints.get": { answer: endpoint },
  "endpoints.update": { request: { active: false }, answer: { ...endpoint, active: false } },
  "endpoints.test": { request: { type: "payment.succeeded" } },
  "deliveries.list": { answer: pageOf(delivery) }
}

/** An idempotency key per operation, so that no example reuses another's. */
export const exampleIdempotencyKey = (group: string, name: string): string => `try-${group}-${name}-1`
