import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type TriggerRequest, triggers } from "../../src/emulator/Emulator.ts"
import { call, connected, openLink, raw, somePrice, someSession, submit } from "../emulator/Harness.ts"
import { providerChecks } from "./ProviderSchemas.ts"

const eventNames = {
  "charge.failed": "ChargeFailedEvent",
  "charge.refunded": "ChargeRefundedEvent",
  "charge.succeeded": "ChargeSucceededEvent",
  "checkout.session.completed": "CheckoutSessionCompletedEvent",
  "coupon.created": "CouponCreatedEvent",
  "coupon.deleted": "CouponDeletedEvent",
  "coupon.updated": "CouponUpdatedEvent",
  "customer.created": "CustomerCreatedEvent",
  "customer.subscription.created": "CustomerSubscriptionCreatedEvent",
  "customer.subscription.deleted": "CustomerSubscriptionDeletedEvent",
  "customer.subscription.updated": "CustomerSubscriptionUpdatedEvent",
  "invoice.created": "InvoiceCreatedEvent",
  "invoice.finalized": "InvoiceFinalizedEvent",
  "invoice.paid": "InvoicePaidEvent",
  "invoice.payment_failed": "InvoicePaymentFailedEvent",
  "invoice.payment_succeeded": "InvoicePaymentSucceededEvent",
  "payment_intent.created": "PaymentIntentCreatedEvent",
  "payment_intent.payment_failed": "PaymentIntentPaymentFailedEvent",
  "payment_intent.succeeded": "PaymentIntentSucceededEvent",
  "payment_link.created": "PaymentLinkCreatedEvent",
  "payment_link.updated": "PaymentLinkUpdatedEvent",
  "payout.canceled": "PayoutCanceledEvent",
  "payout.created": "PayoutCreatedEvent",
  "payout.failed": "PayoutFailedEvent",
  "payout.paid": "PayoutPaidEvent",
  "payout.updated": "PayoutUpdatedEvent",
  "price.created": "PriceCreatedEvent",
  "product.created": "ProductCreatedEvent",
  "promotion_code.created": "PromotionCodeCreatedEvent",
  "promotion_code.updated": "PromotionCodeUpdatedEvent",
  "refund.created": "RefundCreatedEvent",
  "refund.updated": "RefundUpdatedEvent"
} as const

const eventTypes = Object.keys(eventNames)

/** Events that only a trigger leads to. */
const triggeredNames = {
  "account.application.deauthorized": "AccountApplicationDeauthorizedEvent",
  "account.updated": "AccountUpdatedEvent",
  "charge.dispute.closed": "ChargeDisputeClosedEvent",
  "charge.dispute.created": "ChargeDisputeCreatedEvent",
  "charge.dispute.funds_reinstated": "ChargeDisputeFundsReinstatedEvent",
  "charge.dispute.funds_withdrawn": "ChargeDisputeFundsWithdrawnEvent",
  "charge.refund.updated": "ChargeRefundUpdatedEvent",
  "refund.failed": "RefundFailedEvent",
  "checkout.session.async_payment_failed": "CheckoutSessionAsyncPaymentFailedEvent",
  "checkout.session.async_payment_succeeded": "CheckoutSessionAsyncPaymentSucceededEvent",
  "payment_intent.requires_action": "PaymentIntentRequiresActionEvent"
} as const

/** The types that the emulator's answers are held against. */
const checkObject = providerChecks({
  account: { file: "Accounts", name: "Account" },
  balance: { file: "Balance", name: "Balance" },
  balance_settings: { file: "BalanceSettings", name: "BalanceSettings" },
  balance_transaction: { file: "BalanceTransactions", name: "BalanceTransaction" },
  bank_account: { file: "BankAccounts", name: "BankAccount" },
  charge: { file: "Charges", name: "Charge" },
  "checkout.session": { file: "Checkout/Sessions", name: "Session" },
  coupon: { file: "Coupons", name: "Coupon" },
  customer: { file: "Customers", name: "Customer" },
  deleted: { file: "Coupons", name: "DeletedCoupon" },
  dispute: { file: "Disputes", name: "Dispute" },
  invoice: { file: "Invoices", name: "Invoice" },
  item: { file: "LineItems", name: "LineItem" },
  line_item: { file: "InvoiceLineItems", name: "InvoiceLineItem" },
  payment_intent: { file: "PaymentIntents", name: "PaymentIntent" },
  payment_link: { file: "PaymentLinks", name: "PaymentLink" },
  payout: { file: "Payouts", name: "Payout" },
  promotion_code: { file: "PromotionCodes", name: "PromotionCode" },
  refund: { file: "Refunds", name: "Refund" },
  subscription: { file: "Subscriptions", name: "Subscription" },
  subscription_item: { file: "SubscriptionItems", name: "SubscriptionItem" },
  "v1.account.application.deauthorized": { file: "V2/Core/Events", name: "V1AccountApplicationDeauthorizedEvent" },
  "v1.account.updated": { file: "V2/Core/Events", name: "V1AccountUpdatedEvent" },
  "v1.capability.updated": { file: "V2/Core/Events", name: "V1CapabilityUpdatedEvent" },
  "v2.core.account[requirements].updated": {
    file: "V2/Core/Events",
    name: "V2CoreAccountIncludingRequirementsUpdatedEvent"
  },
  "v2.core.event_destination.ping": { file: "V2/Core/Events", name: "V2CoreEventDestinationPingEvent" },
  ...eventTypesOf(eventNames),
  ...eventTypesOf(triggeredNames)
})

function eventTypesOf<const Names extends Readonly<Record<string, string>>>(names: Names) {
  const types: Record<string, { readonly file: string; readonly name: string }> = {}
  for (const [type, name] of Object.entries(names)) types[type] = { file: "Events", name }
  // Entries of a record carry its keys, which the library's type of `Object.entries` forgets
  return types as Readonly<Record<keyof Names & string, { readonly file: string; readonly name: string }>>
}

type Checked = Parameters<typeof checkObject>[0]

/** An account that has sold with codes, by links and by subscription, has paid back and has been paid out. */
const soldOut = Effect.gen(function* () {
  const { account, emulator, stripe } = yield* connected()
  const percent = yield* call(() =>
    stripe.coupons.create({ percent_off: 12.5, duration: "repeating", duration_in_months: 2 })
  )
  const once = yield* call(() => stripe.coupons.create({ amount_off: 100, currency: "brl", metadata: { a: "1" } }))
  yield* call(() => stripe.coupons.update(once.id, { name: "One real off" }))
  const forEver = yield* call(() =>
    stripe.promotionCodes.create({ promotion: { type: "coupon", coupon: percent.id }, code: "PERCENT" })
  )
  yield* call(() =>
    stripe.promotionCodes.create({ promotion: { type: "coupon", coupon: once.id }, code: "ONCE", max_redemptions: 5 })
  )
  const gone = yield* call(() => stripe.coupons.create({ percent_off: 1 }))
  yield* call(() => stripe.promotionCodes.update(forEver.id, { metadata: { a: "1" } }))
  const deleted = yield* raw(emulator.url, `/v1/coupons/${gone.id}`, {
    method: "DELETE",
    headers: { "stripe-account": account }
  })

  const coffee = yield* somePrice(stripe, { unit_amount: 2_000 })
  const link = yield* call(() =>
    stripe.paymentLinks.create({
      line_items: [{ price: coffee.id, quantity: 1, adjustable_quantity: { enabled: true, maximum: 5 } }],
      allow_promotion_codes: true,
      restrictions: { completed_sessions: { limit: 1 } },
      payment_intent_data: { metadata: { a: "1" } },
      customer_creation: "always"
    })
  )
  yield* submit(yield* openLink(link.url), { action: "pay", promotion_code: "once", "quantities[0]": "2" })
  const monthly = yield* somePrice(stripe, { recurring: { interval: "month" } })
  yield* call(() =>
    stripe.paymentLinks.create({
      line_items: [{ price: monthly.id, quantity: 1 }],
      subscription_data: { trial_period_days: 7 },
      after_completion: { type: "redirect", redirect: { url: "https://shop.example" } }
    })
  )
  const subscription = yield* someSession(stripe, {
    mode: "subscription",
    line_items: [
      { price: monthly.id, quantity: 1 },
      { price: coffee.id, quantity: 1 }
    ],
    allow_promotion_codes: true,
    subscription_data: { metadata: { a: "1" } }
  })
  yield* submit(subscription.url, { action: "decline" })
  yield* submit(subscription.url, { action: "pay", email: "a@b.example", promotion_code: "PERCENT" })
  const trial = yield* someSession(stripe, {
    mode: "subscription",
    line_items: [{ price: monthly.id, quantity: 1 }],
    subscription_data: { trial_period_days: 7 }
  })
  yield* submit(trial.url, { action: "pay" })
  const made = (yield* call(() => stripe.subscriptions.list())).data.map(({ id }) => id)
  yield* emulator.renewSubscription({ account, id: made[1] ?? "", outcome: "paid" })
  yield* emulator.renewSubscription({ account, id: made[1] ?? "", outcome: "failed" })
  yield* call(() => stripe.subscriptions.cancel(made[0] ?? ""))

  const charge = (yield* call(() => stripe.charges.list())).data.at(-1)
  const refund = yield* call(() => stripe.refunds.create({ charge: charge?.id ?? "", amount: 100 }))
  yield* call(() => stripe.refunds.update(refund.id, { metadata: { a: "1" } }))
  for (const state of ["paid", "failed", "canceled"] as const) {
    yield* emulator.orderPayout({ account, amount: 300, currency: "brl", state })
  }
  const read = (path: string) =>
    Effect.map(raw(emulator.url, path, { headers: { "stripe-account": account } }), ({ text }): unknown =>
      JSON.parse(text)
    )
  return { account, deleted, read }
})

const dataOf = (list: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  typeof list === "object" && list !== null && "data" in list && Array.isArray(list.data) ? list.data : []

const lists = (account: string, ids: Readonly<Record<"invoice" | "link" | "subscription", string>>) =>
  [
    ["coupon", "/v1/coupons?limit=100"],
    ["coupon", "/v1/coupons?limit=100&expand[]=data.applies_to"],
    ["promotion_code", "/v1/promotion_codes?limit=100"],
    ["promotion_code", "/v1/promotion_codes?limit=100&expand[]=data.promotion.coupon.applies_to"],
    ["payment_link", "/v1/payment_links?limit=100"],
    ["payment_link", "/v1/payment_links?limit=100&expand[]=data.line_items.data.price"],
    ["item", `/v1/payment_links/${ids.link}/line_items`],
    ["customer", "/v1/customers?limit=100"],
    ["subscription", "/v1/subscriptions?limit=100&status=all"],
    [
      "subscription",
      "/v1/subscriptions?limit=100&status=all&expand[]=data.customer&expand[]=data.latest_invoice.discounts&expand[]=data.discounts.promotion_code&expand[]=data.items.data.price"
    ],
    ["subscription_item", `/v1/subscription_items?subscription=${ids.subscription}`],
    ["invoice", "/v1/invoices?limit=100"],
    ["invoice", "/v1/invoices?limit=100&expand[]=data.payments&expand[]=data.discounts&expand[]=data.customer"],
    ["line_item", `/v1/invoices/${ids.invoice}/lines?expand[]=data.pricing.price_details.price`],
    ["refund", "/v1/refunds?limit=100"],
    ["refund", "/v1/refunds?limit=100&expand[]=data.charge&expand[]=data.balance_transaction"],
    ["balance_transaction", "/v1/balance_transactions?limit=100"],
    ["balance_transaction", "/v1/balance_transactions?limit=100&expand[]=data.source"],
    ["payout", "/v1/payouts?limit=100"],
    ["payout", "/v1/payouts?limit=100&expand[]=data.balance_transaction"],
    ["bank_account", `/v1/accounts/${account}/external_accounts`],
    ["charge", "/v1/charges?limit=100&expand[]=data.balance_transaction&expand[]=data.customer"],
    ["payment_intent", "/v1/payment_intents?limit=100&expand[]=data.customer"],
    [
      "checkout.session",
      "/v1/checkout/sessions?limit=100&expand[]=data.subscription&expand[]=data.invoice&expand[]=data.payment_link&expand[]=data.discounts.promotion_code&expand[]=data.line_items"
    ]
  ] as const satisfies ReadonlyArray<readonly [Checked, string]>

const idOf = (list: unknown): string => String(dataOf(list)[0]?.["id"])

const isChecked = (type: unknown): type is Checked => typeof type === "string" && eventTypes.includes(type)

/** The checks of the largest types are compiled while the first test runs, which takes long on a busy machine. */
const compileTimeout = 120_000

describe("the emulator's codes, links, subscriptions and money", () => {
  it.scopedLive(
    "have the fields and the values that the provider's types say, expanded or not",
    () =>
      Effect.gen(function* () {
        const { account, deleted, read } = yield* soldOut
        const ids = {
          invoice: idOf(yield* read("/v1/invoices")),
          link: idOf(yield* read("/v1/payment_links")),
          subscription: idOf(yield* read("/v1/subscriptions?status=all"))
        }
        for (const [shape, path] of lists(account, ids)) {
          const data = dataOf(yield* read(path))
          expect([path, data.length]).not.toEqual([path, 0])
          expect([path, data.map((object) => checkObject(shape)(object))]).toEqual([path, data.map(() => [])])
        }
        expect(checkObject("balance")(yield* read("/v1/balance"))).toEqual([])
        expect(checkObject("balance_settings")(yield* read("/v1/balance_settings"))).toEqual([])
        expect(checkObject("account")(yield* read("/v1/account"))).toEqual([])
        expect(checkObject("deleted")(JSON.parse(deleted.text))).toEqual([])
      }),
    compileTimeout
  )

  it.scopedLive("are told of in the provider's form, each kind of event", () =>
    Effect.gen(function* () {
      const { read } = yield* soldOut
      const types = new Set<string>()
      for (const event of dataOf(yield* read("/v1/events?limit=100"))) {
        const type = event["type"]
        if (!isChecked(type)) throw new Error(`An event type that is not checked: ${String(type)}`)
        types.add(type)
        expect([type, checkObject(type)(event)]).toEqual([type, []])
      }
      expect(Array.from(types).sort()).toEqual(eventTypes)
    })
  )

  it.scopedLive("are told of in the provider's form, each thing that can be triggered", () =>
    Effect.gen(function* () {
      const { emulator } = yield* connected()
      const seen = new Set<string>()
      for (const request of requests) {
        const account = yield* emulator.ensureAccount()
        const triggered = yield* emulator.trigger({ ...request, account })
        const sent = new Set([...triggered.events, ...triggered.thin_events].map(({ id }) => id))
        const listed = yield* Effect.all(
          [`?account=${account}`, ""].map((query) => raw(emulator.url, `/_emulator/events${query}`))
        )
        const events = listed
          .flatMap(({ text }): ReadonlyArray<unknown> => dataOf(JSON.parse(text)).map(({ event }) => event))
          .filter((event) => sent.has(idOfEvent(event)))
        expect([request.type, events.length]).toEqual([request.type, sent.size])
        for (const event of events) {
          const type = typeOfEvent(event)
          seen.add(type)
          expect([type, checkObject(type)(event)]).toEqual([type, []])
        }
        const disputes = yield* raw(emulator.url, "/v1/disputes?expand[]=data.charge", {
          headers: { "stripe-account": account }
        })
        for (const dispute of dataOf(JSON.parse(disputes.text))) expect(checkObject("dispute")(dispute)).toEqual([])
        const own = yield* raw(emulator.url, "/v1/account", { headers: { "stripe-account": account } })
        if (own.status === 200) expect(checkObject("account")(JSON.parse(own.text))).toEqual([])
      }
      for (const { type } of triggers) expect(seen).toContain(type)
      for (const type of Object.keys(triggeredNames)) expect(seen).toContain(type)
    })
  )
})

/** Each trigger as it is, and those whose options lead to other fields. */
const requests: ReadonlyArray<TriggerRequest> = [
  ...triggers.map(({ type }) => ({ type })),
  { type: "checkout.session.completed", method: "boleto" },
  { type: "checkout.session.async_payment_succeeded", method: "boleto" },
  { type: "checkout.session.async_payment_succeeded", method: "pix" },
  { type: "checkout.session.async_payment_failed", method: "pix" },
  { type: "charge.dispute.closed", outcome: "won" },
  { type: "customer.subscription.created", items: 12 },
  { type: "account.updated", requirements: null, capabilities: null },
  { type: "account.updated", requirements: { currently_due: null, past_due: ["external_account"] } },
  { type: "account.updated", business_profile: { name: "n", url: "https://shop.example" } }
]

const checked: ReadonlyArray<string> = [
  ...eventTypes,
  ...Object.keys(triggeredNames),
  ...triggers.map(({ type }) => type)
]

const isEventType = (type: unknown): type is Checked => typeof type === "string" && checked.includes(type)

const typeOfEvent = (event: unknown): Checked => {
  const type = typeof event === "object" && event !== null && "type" in event ? event.type : undefined
  if (!isEventType(type)) throw new Error(`An event type that is not checked: ${String(type)}`)
  return type
}

const idOfEvent = (event: unknown): string =>
  typeof event === "object" && event !== null && "id" in event ? String(event.id) : ""
