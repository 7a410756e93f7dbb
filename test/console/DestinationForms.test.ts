import { describe, expect, it } from "@effect/vitest"
import { Either } from "effect"
import {
  emptyFilterForm,
  type FilterForm,
  filterSentences,
  filtersOfForm,
  formOfFilters,
  setFilters
} from "../../src/console/pages/destinations/filterForm.ts"
import { suggestedName, urlProblem } from "../../src/console/pages/destinations/nameAndUrl.ts"
import { replayPercent } from "../../src/console/pages/destinations/progress.ts"
import { eventTypes, familiesOf, isEventType, neverPassing } from "../../src/console/pages/events/eventTypes.ts"
import { eventTypes as catalog, EventType, fictitious } from "../../src/events/Catalog.ts"
import { type Filters, parseFilters, passes } from "../../src/events/Filters.ts"

const form = (changes: Partial<FilterForm>): FilterForm => ({ ...emptyFilterForm, ...changes })
const pair = (key: string, value: string, id = 0) => ({ id, key, value })

describe("the form of filters", () => {
  it("gives the API's filters, and reads them back", () => {
    const { filters, problems } = filtersOfForm(
      form({
        currencies: "BRL, usd brl",
        amountMin: "500",
        amountMax: " 1500 ",
        products: "prod_A\nprod_B",
        prices: "price_1",
        metadata: [pair("svc_checkout_page", "coffee"), pair("", "", 1)]
      })
    )
    expect(problems).toEqual({})
    const expected = {
      currencies: ["brl", "usd"],
      amountMin: 500,
      amountMax: 1500,
      products: ["prod_A", "prod_B"],
      prices: ["price_1"],
      metadata: { svc_checkout_page: "coffee" }
    }
    expect(filters).toEqual(expected)
    expect(filtersOfForm(formOfFilters(filters)).filters).toEqual(expected)
    expect(setFilters(filters)).toEqual(Object.keys(expected))
    expect(filterSentences(filters)[0]).toBe("in BRL or USD")
    expect(filtersOfForm(emptyFilterForm)).toEqual({ filters: {}, problems: {} })
  })

  const many = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}${at}`).join(" ")
  const letters = (at: number) => String.fromCharCode(97 + (at % 26))

  it("names the field of everything that the API would refuse", () => {
    const cases: ReadonlyArray<readonly [field: string, changes: Partial<FilterForm>]> = [
      ["filters.currencies", { currencies: "reais" }],
      ["filters.currencies", { currencies: Array.from({ length: 11 }, (_, at) => `aa${letters(at)}`).join(" ") }],
      ["filters.amountMin", { amountMin: "1.5" }],
      ["filters.amountMin", { amountMin: "-1" }],
      ["filters.amountMin", { amountMin: "9007199254740992" }],
      ["filters.amountMax", { amountMax: "1e3" }],
      ["filters.amountMin", { amountMin: "10", amountMax: "9" }],
      ["filters.products", { products: "price_1" }],
      ["filters.products", { products: `prod_${"a".repeat(251)}` }],
      ["filters.products", { products: many("prod_", 21) }],
      ["filters.prices", { prices: "prod_1" }],
      ["filters.prices", { prices: `price_${"a".repeat(250)}` }],
      ["filters.prices", { prices: many("price_", 21) }],
      ["filters.metadata", { metadata: [pair("", "value")] }],
      ["filters.metadata", { metadata: [pair("with space", "value")] }],
      ["filters.metadata", { metadata: [pair("a[0]", "value")] }],
      ["filters.metadata", { metadata: [pair("k".repeat(41), "value")] }],
      ["filters.metadata", { metadata: [pair("key", "")] }],
      ["filters.metadata", { metadata: [pair("key", "v".repeat(501))] }],
      ["filters.metadata", { metadata: Array.from({ length: 11 }, (_, at) => pair(`k${at}`, "v", at)) }]
    ]
    for (const [field, changes] of cases) {
      expect([changes, Object.keys(filtersOfForm(form(changes)).problems)]).toEqual([changes, [field]])
    }
    // Two of one key are one pair for the API: which of them, nobody could say
    expect(filtersOfForm(form({ metadata: [pair("a", "1"), pair("a", "2", 1)] })).problems).toHaveProperty([
      "filters.metadata"
    ])
  })

  it("lets through what the API takes, up to its bounds", () => {
    const accepted: ReadonlyArray<Partial<FilterForm>> = [
      { currencies: Array.from({ length: 10 }, (_, at) => `aa${letters(at)}`).join(",") },
      { amountMin: "0", amountMax: "9007199254740991" },
      { products: many("prod_", 20), prices: many("price_", 20) },
      { products: `prod_${"a".repeat(250)}`, prices: `price_${"a".repeat(249)}` },
      { metadata: Array.from({ length: 10 }, (_, at) => pair(`${at}`.repeat(40), "v".repeat(500), at)) }
    ]
    for (const changes of accepted) {
      const { filters, problems } = filtersOfForm(form(changes))
      expect(problems).toEqual({})
      expect(Either.isRight(parseFilters({ ...filters }))).toBe(true)
    }
  })
})

describe("the event types", () => {
  it("are the contract's, by family", () => {
    expect(eventTypes).toEqual([...EventType.literals])
    expect(isEventType("toString")).toBe(false)
    const families = familiesOf(catalog)
    expect(families.map(({ label }) => label)).toEqual([
      "Payments",
      "Disputes",
      "Checkout",
      "Subscriptions",
      "Payouts",
      "Milestones",
      "Account"
    ])
    expect(families.flatMap(({ types }) => types)).toEqual([...catalog])
    expect(familiesOf([{ type: "stock_level.low" }])[0]?.label).toBe("Stock level")
  })

  it("are said to stop at a filter of money exactly if their events have no money", () => {
    const narrow: ReadonlyArray<readonly [name: "currencies" | "amountMin" | "amountMax", filters: Filters]> = [
      ["currencies", { currencies: ["brl"] }],
      ["amountMin", { amountMin: 0 }],
      ["amountMax", { amountMax: Number.MAX_SAFE_INTEGER }]
    ]
    for (const type of EventType.literals) {
      const sample: { readonly data: unknown } = fictitious[type]((_, data) => ({ data }) as never, {
        id: (prefix) => `${prefix}_test`,
        inDays: () => 0
      })
      const data = { ...(sample.data as Readonly<Record<string, unknown>>) }
      for (const [name, filters] of narrow) {
        const passed = passes(filters, { data, subjects: { metadata: null, priceIds: null, productIds: null } })
        expect([type, name, neverPassing([type], [name]).size === 0]).toEqual([type, name, passed])
      }
    }
  })

  it("are said to stop at products, prices and metadata as the contract's table says", () => {
    const withItems = eventTypes.filter((type) => neverPassing([type], ["products", "prices"]).size === 0)
    expect(withItems.every((type) => /^(checkout|subscription)\./.test(type))).toBe(true)
    expect(withItems).toHaveLength(7)
    expect([...neverPassing(eventTypes, ["metadata"]).keys()]).toEqual(["account.updated"])
    expect(neverPassing(["payment.succeeded", "checkout.completed"], ["products", "amountMin"])).toEqual(
      new Map([["payment.succeeded", ["products"]]])
    )
    expect(neverPassing(eventTypes, []).size).toBe(0)
  })
})

describe("a destination's URL", () => {
  it("is checked while it is typed, as far as a page can know", () => {
    for (const right of [
      "",
      "https://shop.example/webhooks",
      " https://shop.example ",
      "http://localhost:9000/hook",
      "http://127.0.0.1:9000/"
    ]) {
      expect([right, urlProblem(right)]).toEqual([right, undefined])
    }
    for (const wrong of [
      "shop.example",
      "http://shop.example/",
      "https://shop.example:8443/",
      "https://user:secret@shop.example/",
      "https://shop.example/?token=1",
      "https://shop.example/#top",
      "https://shop.example/a b",
      "ftp://shop.example/",
      `https://shop.example/${"a".repeat(2048)}`
    ]) {
      expect([wrong, typeof urlProblem(wrong)]).toEqual([wrong, "string"])
    }
  })

  it("suggests a name", () => {
    expect([suggestedName("https://shop.example/webhooks"), suggestedName("shop")]).toEqual(["shop.example", ""])
  })
})

describe("a replay's progress", () => {
  it("is its way through the time", () => {
    const from = { since: "2026-09-21T13:00:00.000Z", until: "2026-09-21T14:00:00.000Z" }
    const at = (reachedAt: string) => replayPercent({ ...from, reachedAt })
    expect([at(from.since), at("2026-09-21T13:15:00.000Z"), at(from.until)]).toEqual([0, 25, 100])
    expect(replayPercent({ since: from.since, until: from.since, reachedAt: from.since })).toBe(100)
  })
})
