import { describe, expect, it } from "@effect/vitest"
import { Either, FastCheck } from "effect"
import { EventType } from "../../src/events/Catalog.ts"
import { type Filters, parseFilters, passes } from "../../src/events/Filters.ts"
import { filterSubjects, parseProviderEvent } from "../../src/events/stripe/ProviderEvent.ts"
import { translate } from "../../src/events/stripe/Translate.ts"
import * as samples from "./ProviderEvents.ts"

const refusal = (input: Record<string, unknown>) =>
  Either.match(parseFilters(input), { onLeft: (refused) => refused, onRight: () => "accepted" as const })

const metadata = { shop: "north" }
const price = { id: "price_1", product: "prod_1" }

/** One of the samples, with our metadata and one amount in all of its fields. */
const of500 = (object: object) => ({
  ...object,
  ...Object.fromEntries(Object.keys(object).flatMap((key) => (key.startsWith("amount") ? [[key, 500]] : []))),
  metadata
})

const invoice = {
  ...of500(samples.invoice),
  parent: { subscription_details: { subscription: "sub_1", metadata: { shop: "south", plan: "gold" } } }
}
const payout = of500(samples.payout)
const subscription = of500(samples.subscription)
const session = of500(samples.checkoutSession)
const dispute = of500(samples.dispute)

const origins: ReadonlyArray<readonly [type: EventType, providerType: string, object: unknown]> = [
  ["payment.succeeded", "payment_intent.succeeded", of500(samples.paymentIntent)],
  ["payment.failed", "payment_intent.payment_failed", of500(samples.failedPaymentIntent)],
  ["payment.refunded", "charge.refunded", of500(samples.charge)],
  ["dispute.created", "charge.dispute.created", dispute],
  ["dispute.closed", "charge.dispute.closed", dispute],
  ["checkout.completed", "checkout.session.completed", session],
  ["checkout.payment_succeeded", "checkout.session.async_payment_succeeded", session],
  ["checkout.payment_failed", "checkout.session.async_payment_failed", session],
  ["subscription.created", "customer.subscription.created", subscription],
  ["subscription.canceled", "customer.subscription.deleted", subscription],
  ["subscription.renewed", "invoice.paid", invoice],
  ["subscription.payment_failed", "invoice.payment_failed", invoice],
  ["payout.paid", "payout.paid", payout],
  ["payout.failed", "payout.failed", payout],
  ["payout.created", "payout.created", payout],
  ["payout.updated", "payout.updated", payout],
  ["payout.canceled", "payout.canceled", payout]
]

const soldItems = { priceIds: ["price_1"], productIds: ["prod_1"] }

const eventOf = (providerType: string, object: unknown) => {
  const event = Either.getOrThrow(parseProviderEvent(samples.snapshot(providerType, object)))
  const translation = translate({
    event,
    environment: "sandbox",
    organizationId: "0199c0de-0000-7000-8000-000000000001",
    soldItems
  })
  if (translation._tag !== "Translated") {
    throw new Error(`${providerType} was not translated: ${JSON.stringify(translation)}`)
  }
  return { data: { ...translation.events[0].data }, subjects: filterSubjects(event, soldItems) }
}

/** Made of the payment that caused it, and compared as that is; and one with everything that a filter could mistake. */
const madeHere: ReadonlyArray<readonly [type: EventType, event: () => Parameters<typeof passes>[1]]> = [
  ["milestone.first_payment", () => eventOf("payment_intent.succeeded", of500(samples.paymentIntent))],
  [
    "account.updated",
    () => {
      const account = { id: "acct_1", default_currency: "brl", amount: 500, metadata, items: { data: [{ price }] } }
      const event = Either.getOrThrow(parseProviderEvent(samples.snapshot("account.updated", account)))
      const requirements = { action_required: false, currently_due_count: 0, past_due_count: 0 }
      const data = { account_id: "acct_1", livemode: false, charges_enabled: true, capabilities: {}, requirements }
      return { data, subjects: filterSubjects(event, soldItems) }
    }
  ]
]

const events = [
  ...origins.map(([type, providerType, object]) => [type, () => eventOf(providerType, object)] as const),
  ...madeHere
]

/** One filter of each kind that the events above pass where it applies to them. */
const filters = {
  currencies: { currencies: ["usd", "brl"] },
  amountMin: { amountMin: 500 },
  amountMax: { amountMax: 500 },
  products: { products: ["prod_0", "prod_1"] },
  prices: { prices: ["price_1"] },
  metadata: { metadata: { shop: "north" } }
} satisfies Record<string, Filters>

const money = [
  ...["payment.", "dispute.", "checkout.", "subscription.renewed", "subscription.payment_failed", "payout."],
  "milestone."
]

/** The contract's table: which types pass through which filters. Every other pair does not. */
const applicable: Readonly<Record<keyof typeof filters, ReadonlyArray<string>>> = {
  currencies: money,
  amountMin: money,
  amountMax: money,
  products: ["checkout.", "subscription."],
  prices: ["checkout.", "subscription."],
  metadata: ["payment.", "dispute.", "checkout.", "subscription.", "payout.", "milestone."]
}

const others = {
  currencies: { currencies: ["usd"] },
  amountMin: { amountMin: 501 },
  amountMax: { amountMax: 499 },
  products: { products: ["prod_2"] },
  prices: { prices: ["price_2"] },
  metadata: { metadata: { shop: "north", door: "1" } }
} satisfies Record<string, Filters>

describe("filters decide by type and key as the contract's table says", () => {
  for (const [type, eventMade] of events) {
    for (const key of ["currencies", "amountMin", "amountMax", "products", "prices", "metadata"] as const) {
      const expected = applicable[key].some((prefix) => type.startsWith(prefix))
      it(`${type} × ${key}: ${expected ? "compared" : "never delivered"}`, () => {
        expect(passes(filters[key], eventMade())).toBe(expected)
        expect(passes(others[key], eventMade())).toBe(false)
      })
    }
    it(`${type} × {}: delivered`, () => {
      expect(passes({}, eventMade())).toBe(true)
    })
  }

  it("covers every type", () => {
    expect(events.map(([type]) => type).sort()).toEqual(EventType.literals.toSorted())
  })
})

describe("the origin of metadata", () => {
  const metadataOf = (providerType: string, object: unknown) => eventOf(providerType, object).subjects.metadata

  it("is the invoice, and the subscription for keys that the invoice lacks", () => {
    expect(metadataOf("invoice.paid", invoice)).toEqual({ shop: "north", plan: "gold" })
  })

  it("is read from the older payloads of invoices too", () => {
    const older = {
      ...invoice,
      parent: undefined,
      subscription: "sub_1",
      subscription_details: { metadata: { plan: "gold" } },
      lines: { data: [{ price }], has_more: true }
    }
    const { subjects } = eventOf("invoice.paid", older)
    expect(subjects).toEqual({
      priceIds: ["price_1"],
      productIds: ["prod_1"],
      metadata: { shop: "north", plan: "gold" },
      truncated: true,
      missing: { items: null, metadata: null }
    })
  })

  it("is nothing that the payload does not hold", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.dictionary(FastCheck.string(), FastCheck.anything()), (object) => {
        const event = { id: "evt_1", type: "payout.paid", created: 1, livemode: false, account: null, data: { object } }
        for (const type of origins.map(([, providerType]) => providerType)) {
          filterSubjects({ ...event, type }, null)
        }
      })
    )
  })
})

describe("filters that are refused", () => {
  it("name every unknown key", () => {
    expect(refusal({ tags: 1, currencies: ["brl"], amount_min: 2 })).toEqual({
      reason: "unknown",
      reasons: new Map([
        ["filters.tags", "is not a filter; there are currencies, amountMin, amountMax, products, prices, metadata"],
        ["filters.amount_min", "is not a filter; did you mean amountMin?"]
      ])
    })
  })

  it("have amountMin above amountMax", () => {
    expect(refusal({ amountMin: 2, amountMax: 1 })).toEqual({
      reason: "invalid",
      reasons: new Map([
        ["filters.amountMin", "must not be greater than filters.amountMax"],
        ["filters.amountMax", "must not be less than filters.amountMin"]
      ])
    })
    expect(refusal({ amountMin: 1, amountMax: 1 })).toBe("accepted")
  })

  it.each([
    ["currencies", "brl"],
    ["currencies", ["BRL"]],
    ["currencies", []],
    ["products", []],
    ["prices", []],
    ["metadata", {}],
    ["currencies", Array.from({ length: 11 }, () => "brl")],
    ["amountMin", "5"],
    ["amountMin", 1.5],
    ["amountMax", -1],
    ["amountMax", null],
    ["products", ["price_1"]],
    ["products", Array.from({ length: 21 }, (_, index) => `prod_${index}`)],
    ["prices", ["prod_1"]],
    ["prices", [""]],
    ["metadata", { "a b": "1" }],
    ["metadata", { "a[b]": "1" }],
    ["metadata", { a: "" }],
    ["metadata", { a: 1 }],
    ["metadata", { ["k".repeat(41)]: "1" }],
    ["metadata", { a: "v".repeat(501) }],
    ["metadata", Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`k${index}`, "v"]))]
  ])("hold a value of the wrong form in %s: %j", (key, value) => {
    const refused = refusal({ [key]: value })
    expect(refused).toMatchObject({ reason: "invalid" })
    expect(
      typeof refused === "string"
        ? []
        : [...refused.reasons.keys()].every((field) => field.startsWith(`filters.${key}`))
    ).toBe(true)
  })

  it("are empty: one can't see whether that would be all events or none", () => {
    expect(refusal({ products: [], metadata: {} })).toEqual({
      reason: "invalid",
      reasons: new Map([
        ["filters.products", "must not be an empty list: leave it out if the endpoint should not filter by it"],
        ["filters.metadata", "must not be empty: leave it out if the endpoint should not filter by it"]
      ])
    })
  })

  it("have a key of metadata that breaks the rule of keys", () => {
    expect(refusal({ metadata: { "a b": "1", ["🔑".repeat(41)]: "1", good: "1" } })).toEqual({
      reason: "invalid",
      reasons: new Map(
        ["a b", "🔑".repeat(41)].map((key) => [
          `filters.metadata.${key}`,
          "must have a key of 1 to 40 characters, without spaces, [ and ]"
        ])
      )
    })
  })

  it.each([
    [{}],
    [{ currencies: ["brl", "usd"], amountMin: 0, amountMax: 0 }],
    [{ products: Array.from({ length: 20 }, (_, index) => `prod_${index}`), prices: ["price_1Ab"] }],
    [{ metadata: { svc_checkout_page: "page 1", ["k".repeat(40)]: "v".repeat(500) } }],
    [{ metadata: { ["🔑".repeat(40)]: "🎁".repeat(500) } }]
  ])("are none of these: %j", (input) => {
    expect(refusal(input)).toBe("accepted")
  })
})
