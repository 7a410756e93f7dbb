import { Effect } from "effect"
import { type TriggerRequest, triggers } from "../../src/emulator/Emulator.ts"
import { call, connected, openLink, raw, somePrice, someSession, submit } from "../emulator/Harness.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { providerChecks } from "./ProviderSchemas.ts"

/** The types that the emulator's answers are held against. */
const check = providerChecks({
  account: { file: "Accounts", name: "Account" },
  balance: { file: "Balance", name: "Balance" },
  balance_settings: { file: "BalanceSettings", name: "BalanceSettings" },
  balance_transaction: { file: "BalanceTransactions", name: "BalanceTransaction" },
  bank_account: { file: "BankAccounts", name: "BankAccount" },
  charge: { file: "Charges", name: "Charge" },
  "checkout.session": { file: "Checkout/Sessions", name: "Session" },
  coupon: { file: "Coupons", name: "Coupon" },
  customer: { file: "Customers", name: "Customer" },
  deletedCoupon: { file: "Coupons", name: "DeletedCoupon" },
  deletedProduct: { file: "Products", name: "DeletedProduct" },
  dispute: { file: "Disputes", name: "Dispute" },
  invoice: { file: "Invoices", name: "Invoice" },
  item: { file: "LineItems", name: "LineItem" },
  line_item: { file: "InvoiceLineItems", name: "InvoiceLineItem" },
  payment_intent: { file: "PaymentIntents", name: "PaymentIntent" },
  payment_link: { file: "PaymentLinks", name: "PaymentLink" },
  payout: { file: "Payouts", name: "Payout" },
  price: { file: "Prices", name: "Price" },
  product: { file: "Products", name: "Product" },
  promotion_code: { file: "PromotionCodes", name: "PromotionCode" },
  refund: { file: "Refunds", name: "Refund" },
  subscription: { file: "Subscriptions", name: "Subscription" },
  subscription_item: { file: "SubscriptionItems", name: "SubscriptionItem" }
})

/** Events have the form of the package's types, which are called like them. Returns which types there were. */
const expectEvents = (events: ReadonlyArray<unknown>): ReadonlySet<string> => {
  const typeOf = (event: unknown) => String(Object(event).type)
  const types = new Set(events.map(typeOf))
  const checkEvent = providerChecks(
    Object.fromEntries(
      [...types].map((type) => {
        const words = type.replace("[", ".including.").split(/\W|_/)
        const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")
        return [type, { file: /^v\d/.test(type) ? "V2/Core/Events" : "Events", name: `${name}Event` }] as const
      })
    )
  )
  for (const event of events) expect([typeOf(event), checkEvent(typeOf(event))(event)]).toEqual([typeOf(event), []])
  return types
}

type Checked = Parameters<typeof check>[0]
type Lists = ReadonlyArray<readonly [Checked, string]>

const reader = (url: string, account: string) => (path: string) =>
  Effect.map(raw(url, path, { headers: { "stripe-account": account } }), ({ text }): unknown => JSON.parse(text))

/** An account that has sold products at prices of every kind, once and by subscription. */
const busyAccount = Effect.gen(function* () {
  const { account, emulator, stripe } = yield* connected()
  const product = yield* call(() =>
    stripe.products.create({
      name: "Coffee",
      images: ["https://shop.example/1.png"],
      marketing_features: [{ name: "fresh" }],
      metadata: { a: "1" },
      package_dimensions: { height: 1, length: 2, weight: 3, width: 4 },
      default_price_data: { currency: "usd", unit_amount: 900 }
    })
  )
  yield* call(() => stripe.products.update(product.id, { description: "x", metadata: { b: "2" } }))
  const gone = yield* call(() => stripe.products.create({ name: "gone" }))
  const deleted = yield* call(() => stripe.products.del(gone.id))
  const monthly = yield* somePrice(stripe, {
    recurring: { interval: "month", trial_period_days: 3 },
    lookup_key: "k",
    tax_behavior: "exclusive"
  })
  yield* call(() => stripe.prices.update(monthly.id, { nickname: "n" }))
  yield* somePrice(stripe, { transform_quantity: { divide_by: 2, round: "up" } })
  const tiered = yield* call(() =>
    stripe.prices.create({
      currency: "brl",
      product: product.id,
      billing_scheme: "tiered",
      tiers_mode: "volume",
      tiers: [
        { up_to: 2, unit_amount: 10, flat_amount: 1 },
        { up_to: "inf", unit_amount: 5 }
      ]
    })
  )
  const chosen = yield* call(() =>
    stripe.prices.create({
      currency: "brl",
      product_data: { name: "any" },
      custom_unit_amount: { enabled: true, minimum: 1 }
    })
  )
  yield* call(() =>
    stripe.rawRequest("POST", "/v1/prices", { currency: "brl", product: product.id, unit_amount_decimal: "0.5" })
  )
  const open = yield* someSession(stripe, {
    mode: "subscription",
    line_items: [{ price: monthly.id, quantity: 1 }],
    subscription_data: { trial_period_days: 3 }
  })
  const paid = yield* someSession(stripe, {
    payment_intent_data: { metadata: { a: "1" }, description: "d" },
    cancel_url: "https://shop.example",
    customer_email: "a@b.example"
  })
  yield* submit(paid.url, { action: "decline" })
  yield* submit(paid.url, { action: "pay", email: "b@b.example" })
  const failed = yield* someSession(stripe, { line_items: [{ price: tiered.id, quantity: 30 }] })
  yield* submit(failed.url, { action: "decline" })
  const donated = yield* someSession(stripe, { line_items: [{ price: chosen.id, quantity: 1 }] })
  yield* submit(donated.url, { action: "pay", amount: "50" })
  const expired = yield* someSession(stripe)
  yield* call(() => stripe.checkout.sessions.expire(expired.id))
  yield* call(() =>
    stripe.accounts.create({ type: "custom", business_profile: { name: "n" }, business_type: "company" })
  )
  return { deleted, open, paid, read: reader(emulator.url, account) }
})

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
  return { account, deleted, read: reader(emulator.url, account) }
})

const dataOf = (list: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  typeof list === "object" && list !== null && "data" in list && Array.isArray(list.data) ? list.data : []

const listsOfSales = (paid: string, open: string) =>
  [
    ["product", "/v1/products?limit=100"],
    ["product", "/v1/products?limit=100&expand[]=data.default_price.product"],
    ["price", "/v1/prices?limit=100"],
    ["price", "/v1/prices?limit=100&expand[]=data.tiers&expand[]=data.product.default_price"],
    ["checkout.session", "/v1/checkout/sessions?limit=100"],
    [
      "checkout.session",
      "/v1/checkout/sessions?limit=100&expand[]=data.line_items&expand[]=data.payment_intent.latest_charge"
    ],
    ["item", `/v1/checkout/sessions/${paid}/line_items`],
    ["item", `/v1/checkout/sessions/${open}/line_items?expand[]=data.price.product`],
    ["payment_intent", "/v1/payment_intents?limit=100"],
    ["payment_intent", "/v1/payment_intents?limit=100&expand[]=data.latest_charge"],
    ["charge", "/v1/charges?limit=100"],
    ["charge", "/v1/charges?limit=100&expand[]=data.payment_intent"],
    ["account", "/v1/accounts?limit=100"]
  ] as const satisfies Lists

const listsOfMoney = (account: string, ids: Readonly<Record<"invoice" | "link" | "subscription", string>>) =>
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
  ] as const satisfies Lists

const idOf = (list: unknown): string => String(dataOf(list)[0]?.["id"])

/** Every object of each list has the form of its type, and no list is empty. */
const expectLists = Effect.fnUntraced(function* (lists: Lists, read: ReturnType<typeof reader>) {
  for (const [shape, path] of lists) {
    const data = dataOf(yield* read(path))
    expect([path, data.length]).not.toEqual([path, 0])
    expect([path, data.map((object) => check(shape)(object))]).toEqual([path, data.map(() => [])])
  }
})

/** The checks of the largest types are compiled while the first test runs, which takes long on a busy machine. */
const compileTimeout = 120_000

describe("what the emulator answers", () => {
  it.scopedLive(
    "has the fields and the values that the provider's types say, expanded or not",
    function* () {
      const sales = yield* busyAccount
      yield* expectLists(listsOfSales(sales.paid.id, sales.open.id), sales.read)
      expect(check("account")(yield* sales.read("/v1/account"))).toEqual([])
      expect(check("checkout.session")(yield* sales.read(`/v1/checkout/sessions/${sales.paid.id}`))).toEqual([])
      const { lastResponse: _, ...body } = sales.deleted
      expect(check("deletedProduct")(body)).toEqual([])

      const { account, deleted, read } = yield* soldOut
      const ids = {
        invoice: idOf(yield* read("/v1/invoices")),
        link: idOf(yield* read("/v1/payment_links")),
        subscription: idOf(yield* read("/v1/subscriptions?status=all"))
      }
      yield* expectLists(listsOfMoney(account, ids), read)
      expect(check("balance")(yield* read("/v1/balance"))).toEqual([])
      expect(check("balance_settings")(yield* read("/v1/balance_settings"))).toEqual([])
      expect(check("account")(yield* read("/v1/account"))).toEqual([])
      expect(check("deletedCoupon")(JSON.parse(deleted.text))).toEqual([])
    },
    compileTimeout
  )

  it.scopedLive("tells of every kind of event in the provider's form", function* () {
    const lists = [yield* busyAccount, yield* soldOut].map(({ read }) => read("/v1/events?limit=100"))
    expect(expectEvents((yield* Effect.all(lists)).flatMap(dataOf)).size).toBe(36)
  })

  it.scopedLive("tells of each thing that can be triggered in the provider's form", function* () {
    const { emulator } = yield* connected()
    const all: Array<unknown> = []
    for (const request of requests) {
      const account = yield* emulator.ensureAccount()
      const triggered = yield* emulator.trigger({ ...request, account })
      const sent = new Set([...triggered.events, ...triggered.thin_events].map(({ id }) => id))
      const listed = yield* Effect.all(
        [`?account=${account}`, ""].map((query) => raw(emulator.url, `/_emulator/events${query}`))
      )
      const events = listed
        .flatMap(({ text }): ReadonlyArray<unknown> => dataOf(JSON.parse(text)).map(({ event }) => event))
        .filter((event) => sent.has(Object(event).id))
      expect([request.type, events.length]).toEqual([request.type, sent.size])
      all.push(...events)
      const disputes = yield* raw(emulator.url, "/v1/disputes?expand[]=data.charge", {
        headers: { "stripe-account": account }
      })
      for (const dispute of dataOf(JSON.parse(disputes.text))) expect(check("dispute")(dispute)).toEqual([])
      const own = yield* raw(emulator.url, "/v1/account", { headers: { "stripe-account": account } })
      if (own.status === 200) expect(check("account")(JSON.parse(own.text))).toEqual([])
    }
    const seen = expectEvents(all)
    for (const { type } of triggers) expect(seen).toContain(type)
  })
})

describe("the schemas", () => {
  it.scopedLive("find what is missing, what is wrong and what is unknown", function* () {
    const { read } = yield* busyAccount
    const [price] = dataOf(yield* read("/v1/prices?limit=1"))
    const { currency: _, ...missing } = price ?? {}
    const recurring = {
      interval: "fortnight",
      interval_count: 1,
      meter: null,
      trial_period_days: null,
      usage_type: "licensed"
    }
    for (const wrong of [
      missing,
      { ...price, colour: "red" },
      { ...price, type: "sometimes" },
      { ...price, unit_amount: "5" },
      { ...price, unit_amount_decimal: 5 },
      { ...price, recurring },
      { ...price, deleted: true },
      null,
      []
    ]) {
      expect(check("price")(wrong)).not.toEqual([])
    }
    expect(check("price")(price)).toEqual([])
  })
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
