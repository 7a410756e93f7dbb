import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, connected, raw, somePrice, someSession, submit } from "../emulator/Harness.ts"
import { providerChecks } from "./ProviderSchemas.ts"

/** The types that the emulator's answers are held against, by the path or event type that they answer. */
const check = providerChecks({
  account: { file: "Accounts", name: "Account" },
  charge: { file: "Charges", name: "Charge" },
  "checkout.session": { file: "Checkout/Sessions", name: "Session" },
  item: { file: "LineItems", name: "LineItem" },
  payment_intent: { file: "PaymentIntents", name: "PaymentIntent" },
  price: { file: "Prices", name: "Price" },
  product: { file: "Products", name: "Product" },
  deleted: { file: "Products", name: "DeletedProduct" },
  "charge.failed": { file: "Events", name: "ChargeFailedEvent" },
  "charge.succeeded": { file: "Events", name: "ChargeSucceededEvent" },
  "checkout.session.completed": { file: "Events", name: "CheckoutSessionCompletedEvent" },
  "checkout.session.expired": { file: "Events", name: "CheckoutSessionExpiredEvent" },
  "payment_intent.created": { file: "Events", name: "PaymentIntentCreatedEvent" },
  "payment_intent.payment_failed": { file: "Events", name: "PaymentIntentPaymentFailedEvent" },
  "payment_intent.succeeded": { file: "Events", name: "PaymentIntentSucceededEvent" },
  "price.created": { file: "Events", name: "PriceCreatedEvent" },
  "price.updated": { file: "Events", name: "PriceUpdatedEvent" },
  "product.created": { file: "Events", name: "ProductCreatedEvent" },
  "product.deleted": { file: "Events", name: "ProductDeletedEvent" },
  "product.updated": { file: "Events", name: "ProductUpdatedEvent" }
})

type Checked = Parameters<typeof check>[0]

/** An account on which everything that the emulator can do has been done. */
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
  const read = (path: string) =>
    Effect.map(raw(emulator.url, path, { headers: { "stripe-account": account } }), ({ text }): unknown =>
      JSON.parse(text)
    )
  return { deleted, emulator, open, paid, read }
})

const dataOf = (list: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  typeof list === "object" && list !== null && "data" in list && Array.isArray(list.data) ? list.data : []

/** All objects of a list, with their problems. */
const problems = (shape: Checked, list: unknown) => {
  const data = dataOf(list)
  expect(data.length).toBeGreaterThan(0)
  return data.map((object) => check(shape)(object))
}

const isChecked = (type: unknown, known: ReadonlyArray<string>): type is Checked =>
  typeof type === "string" && known.includes(type)

describe("what the emulator answers", () => {
  it.scopedLive("has the fields and the values that the provider's types say, expanded or not", () =>
    Effect.gen(function* () {
      const { deleted, open, paid, read } = yield* busyAccount
      const lists: ReadonlyArray<readonly [Checked, string]> = [
        ["product", "/v1/products?limit=100"],
        ["product", "/v1/products?limit=100&expand[]=data.default_price.product"],
        ["price", "/v1/prices?limit=100"],
        ["price", "/v1/prices?limit=100&expand[]=data.tiers&expand[]=data.product.default_price"],
        ["checkout.session", "/v1/checkout/sessions?limit=100"],
        [
          "checkout.session",
          "/v1/checkout/sessions?limit=100&expand[]=data.line_items&expand[]=data.payment_intent.latest_charge"
        ],
        ["item", `/v1/checkout/sessions/${paid.id}/line_items`],
        ["item", `/v1/checkout/sessions/${open.id}/line_items?expand[]=data.price.product`],
        ["payment_intent", "/v1/payment_intents?limit=100"],
        ["payment_intent", "/v1/payment_intents?limit=100&expand[]=data.latest_charge"],
        ["charge", "/v1/charges?limit=100"],
        ["charge", "/v1/charges?limit=100&expand[]=data.payment_intent"],
        ["account", "/v1/accounts?limit=100"]
      ]
      for (const [shape, path] of lists) {
        const found = problems(shape, yield* read(path))
        expect([path, found]).toEqual([path, found.map(() => [])])
      }
      expect(check("account")(yield* read("/v1/account"))).toEqual([])
      expect(check("checkout.session")(yield* read(`/v1/checkout/sessions/${paid.id}`))).toEqual([])
      const { lastResponse: _, ...body } = deleted
      expect(check("deleted")(body)).toEqual([])
    })
  )

  it.scopedLive("tells of every kind of event in the provider's form", () =>
    Effect.gen(function* () {
      const { read } = yield* busyAccount
      const events = dataOf(yield* read("/v1/events?limit=100"))
      const types = new Set<unknown>()
      for (const event of events) {
        const type = event["type"]
        if (!isChecked(type, eventTypes)) throw new Error(`An event type that is not checked: ${String(type)}`)
        types.add(type)
        expect([type, check(type)(event)]).toEqual([type, []])
      }
      expect(Array.from(types).sort()).toEqual(eventTypes)
    })
  )
})

describe("the schemas", () => {
  it.scopedLive("find what is missing, what is wrong and what is unknown", () =>
    Effect.gen(function* () {
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
  )
})

const eventTypes = [
  "charge.failed",
  "charge.succeeded",
  "checkout.session.completed",
  "checkout.session.expired",
  "payment_intent.created",
  "payment_intent.payment_failed",
  "payment_intent.succeeded",
  "price.created",
  "price.updated",
  "product.created",
  "product.deleted",
  "product.updated"
]
