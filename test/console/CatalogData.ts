import { Effect } from "effect"
import { apiBelow } from "./ConsoleBed.ts"

export const provider = apiBelow("/provider")

export const makeOffer = (name: string, price: Readonly<Record<string, unknown>>) =>
  Effect.gen(function* () {
    const { post } = yield* provider
    const product = yield* post("/products", { name })
    const made = yield* post("/prices", { product: product["id"], ...price })
    return { product: String(product["id"]), price: String(made["id"]) }
  })

/** The catalog of a shop: prices of every kind, promotion codes, links and a checkout page. */
export const makeCatalog = Effect.gen(function* () {
  const { post } = yield* provider
  const beans = yield* post("/products", {
    name: "Coffee beans, 1 kg",
    description: "Roasted every Monday.\nSent on Tuesday.",
    default_price_data: { currency: "brl", unit_amount: 4500 },
    metadata: { sku: "beans-1000" }
  })
  const product = String(beans["id"])
  const monthly = yield* post("/prices", {
    product,
    currency: "brl",
    unit_amount: 4000,
    recurring: { interval: "month", trial_period_days: 7 },
    nickname: "Subscription",
    lookup_key: "beans-monthly"
  })
  yield* post("/prices", {
    product,
    currency: "brl",
    tiers_mode: "graduated",
    tiers: [
      { up_to: 10, unit_amount: 4500 },
      { up_to: "inf", unit_amount: 4000, flat_amount: 1000 }
    ],
    recurring: { interval: "month" }
  })
  yield* makeOffer("Filter papers", { currency: "jpy", unit_amount: 900 })
  yield* makeOffer("Tip", {
    currency: "kwd",
    custom_unit_amount: { minimum: 500, maximum: 50_000, preset: 1500 }
  })
  yield* post("/promotion-codes", {
    code: "SUMMER25",
    discount: { percent_off: 25 },
    duration: "once",
    max_redemptions: 100
  })
  yield* post("/promotion-codes", {
    code: "THANKYOU",
    discount: { amount_off: 1000, currency: "brl" },
    duration: "repeating",
    duration_in_months: 3,
    products: [product]
  })
  const price = String(Object(beans["default_price"])["id"])
  const link = yield* post("/payment-links", {
    line_items: [{ price, quantity: 1, adjustable_quantity: { enabled: true, minimum: 1, maximum: 10 } }],
    restrictions: { completed_sessions: { limit: 100 } }
  })
  yield* post("/payment-links", { line_items: [{ price: String(monthly["id"]), quantity: 2 }] })
  const page = yield* post("/checkout-pages", {
    title: "Coffee beans",
    text: "Roasted every Monday.",
    items: [{ price, quantity: 1, adjustableQuantity: { minimum: 1, maximum: 5 } }]
  })
  return { product, price, linkUrl: String(link["url"]), pageUrl: String(page["url"]) }
})
