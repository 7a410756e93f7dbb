/** The notifications of the bench: a received payment, of the size that the provider's are. */

const paymentIntent = {
  object: "payment_intent",
  amount: 3000,
  amount_capturable: 0,
  amount_details: { tip: {} },
  amount_received: 3000,
  application: null,
  application_fee_amount: null,
  automatic_payment_methods: null,
  canceled_at: null,
  cancellation_reason: null,
  capture_method: "automatic_async",
  client_secret: "pi_3OkWmT2eZvKYlo2C1k9vZ0aB_secret_f3KxQ2vN8sYwTqL0uJdHc7Rm1",
  confirmation_method: "automatic",
  created: 1_760_000_000,
  currency: "brl",
  customer: "cus_PZ1m2n3o4p5q6r",
  description: "Order 10042",
  last_payment_error: null,
  latest_charge: "ch_3OkWmT2eZvKYlo2C1Qw2Er3T",
  livemode: false,
  metadata: { order: "10042", shop: "north", svc_checkout_page: "page_1" },
  next_action: null,
  on_behalf_of: null,
  payment_method: "pm_1OkWmS2eZvKYlo2CZx8Yw7Vu",
  payment_method_configuration_details: null,
  payment_method_options: {
    card: { installments: null, mandate_options: null, network: null, request_three_d_secure: "automatic" },
    pix: { expires_after_seconds: 86_400, expires_at: null, amount_includes_iof: "never" }
  },
  payment_method_types: ["card", "pix"],
  processing: null,
  receipt_email: null,
  review: null,
  setup_future_usage: null,
  shipping: {
    address: {
      city: "Recife",
      country: "BR",
      line1: "Rua da Aurora 1",
      line2: null,
      postal_code: "50050-000",
      state: "PE"
    },
    carrier: null,
    name: "A. Payer",
    phone: null,
    tracking_number: null
  },
  source: null,
  statement_descriptor: null,
  statement_descriptor_suffix: null,
  status: "succeeded",
  transfer_data: null,
  transfer_group: null
}

export const paymentOf = (eventId: string): string => `pi_${eventId}`

const marked = (account: string): string =>
  JSON.stringify(
    {
      id: "EVENT",
      object: "event",
      account,
      api_version: "2026-10-28.endive",
      // New, as the provider's are: by this time it is decided where its receipt is stored
      created: Math.floor(Date.now() / 1000),
      data: { object: { id: "PAYMENT", ...paymentIntent } },
      livemode: false,
      pending_webhooks: 1,
      request: { id: "req_Ab1Cd2Ef3Gh4Ij", idempotency_key: "0c4b2d3e-6f70-4a81-9b92-a3b4c5d6e7f8" },
      type: "payment_intent.succeeded"
    },
    undefined,
    2
  )

const templates = new Map<string, ReadonlyArray<string>>()

/** The body of a notification, about 2.5 kB, as the provider writes it. */
export const notificationOf = (account: string, eventId: string): string => {
  const template = templates.get(account) ?? marked(account).split(/EVENT|PAYMENT/)
  templates.set(account, template)
  const [beforeEvent = "", beforePayment = "", rest = ""] = template
  return `${beforeEvent}${eventId}${beforePayment}${paymentOf(eventId)}${rest}`
}
