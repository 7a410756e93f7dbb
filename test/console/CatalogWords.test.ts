import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { readCount, readPercentage } from "../../src/console/components/forms/Reader.ts"
import { currencyChoices } from "../../src/console/pages/catalog/Currencies.ts"
import { priceLabel, priceWords, tiersOf, trialWords } from "../../src/console/pages/catalog/prices/PriceWords.ts"
import { imageProblem, isShown, linkedHost } from "../../src/console/pages/catalog/products/ImageRules.ts"
import {
  discountWords,
  durationWords,
  productsOf,
  redemptionWords,
  unusableBecause
} from "../../src/console/pages/catalog/promotion-codes/PromotionDraft.ts"

const once = { currency: "brl", type: "one_time", billing_scheme: "per_unit", unit_amount: 2000, recurring: null }
const every = (interval: string, interval_count = 1) => ({
  ...once,
  type: "recurring",
  recurring: { interval, interval_count, trial_period_days: null }
})

const anyField = FastCheck.oneof(FastCheck.anything(), FastCheck.integer(), FastCheck.double(), FastCheck.string())

/** What the provider may send one day: known fields with values of any kind. */
const sentByProvider = FastCheck.oneof(
  FastCheck.anything(),
  FastCheck.record(
    {
      amount_off: anyField,
      billing_scheme: FastCheck.oneof(anyField, FastCheck.constant("tiered")),
      currency: FastCheck.oneof(anyField, FastCheck.constant("brl")),
      custom_unit_amount: FastCheck.oneof(anyField, FastCheck.record({ minimum: anyField, maximum: anyField })),
      max_redemptions: anyField,
      percent_off: anyField,
      recurring: FastCheck.oneof(anyField, FastCheck.record({ interval: anyField, interval_count: anyField })),
      tiers: FastCheck.oneof(
        anyField,
        FastCheck.array(FastCheck.record({ up_to: anyField, unit_amount: anyField, flat_amount: anyField }))
      ),
      times_redeemed: anyField,
      transform_quantity: FastCheck.oneof(anyField, FastCheck.record({ divide_by: anyField })),
      unit_amount: anyField,
      unit_amount_decimal: anyField
    },
    { requiredKeys: [] }
  )
)

describe("a price in words", () => {
  it("says what it costs, and how often", () => {
    expect(priceWords(once)).toBe("R$20.00")
    expect(priceWords(every("month"))).toBe("R$20.00 every month")
    expect(priceWords(every("week", 2))).toBe("R$20.00 every 2 weeks")
    expect(priceWords({ ...every("year"), currency: "jpy" })).toBe("¥2,000 every year")
  })

  it("says for how many", () => {
    expect(priceWords({ ...once, transform_quantity: { divide_by: 12, round: "up" } })).toBe("R$20.00 per 12")
  })

  it("has fractions of the smallest unit", () => {
    expect(priceWords({ ...once, unit_amount: null, unit_amount_decimal: "10.5" })).toBe("R$0.105")
  })

  it("says within which bounds the payer chooses", () => {
    const chosen = (bounds: object) => priceWords({ ...once, unit_amount: null, custom_unit_amount: bounds })
    expect(chosen({})).toBe("The payer chooses the amount in BRL")
    expect(chosen({ minimum: 500, maximum: null })).toBe("The payer chooses the amount in BRL, at least R$5.00")
    expect(chosen({ minimum: 500, maximum: 10_000 })).toBe("The payer chooses the amount in BRL, R$5.00 to R$100.00")
  })

  it("shows its tiers from the first unit to the last", () => {
    const tiered = {
      ...every("month"),
      unit_amount: null,
      billing_scheme: "tiered",
      tiers_mode: "graduated",
      tiers: [
        { up_to: 1, unit_amount: 1000, flat_amount: null },
        { up_to: 10, unit_amount: 500, flat_amount: 1000 },
        { up_to: null, unit_amount: null, unit_amount_decimal: "0.5", flat_amount: 0 }
      ]
    }
    expect(tiersOf(tiered)).toEqual([
      { units: "1", costs: "R$10.00 each" },
      { units: "2 to 10", costs: "R$5.00 each + R$10.00 flat" },
      { units: "11 and more", costs: "R$0.005 each" }
    ])
    expect(priceWords(tiered)).toBe("From R$10.00 each, in tiers, every month")
    expect(priceWords({ ...tiered, tiers: undefined, tiers_mode: "volume" })).toBe(
      "Priced by volume, in BRL, every month"
    )
  })

  it("names the free days of a trial", () => {
    expect(trialWords(every("month"))).toBeUndefined()
    expect(trialWords({ recurring: { interval: "month", trial_period_days: 7 } })).toBe("7 days free first")
  })

  it("stands behind its product in a list", () => {
    expect(priceLabel("Coffee", { ...every("month"), nickname: "Basic" })).toBe("Coffee · R$20.00 every month · Basic")
    expect(priceLabel(undefined, { ...once, product: "prod_1" })).toBe("prod_1 · R$20.00")
  })

  it("is never an error, whatever the provider sends", () => {
    FastCheck.assert(
      FastCheck.property(sentByProvider, (sent) => {
        expect(priceWords(sent)).toMatch(/./)
        for (const { costs, units } of tiersOf(sent)) expect(`${units}${costs}`).toMatch(/./)
        expect(discountWords(sent)).toMatch(/./)
        expect(redemptionWords(sent)).toMatch(/./)
      })
    )
  })
})

describe("a promotion code in words", () => {
  it("says what it takes off, and off what", () => {
    expect(discountWords({ percent_off: 12.5 })).toBe("12.5% off")
    expect(discountWords({ percent_off: null, amount_off: 1000, currency: "brl" })).toBe("R$10.00 off")
    expect(durationWords({ duration: "once" })).toBe("the first payment")
    expect(durationWords({ duration: "forever" })).toBe("every payment")
    expect(durationWords({ duration: "repeating", duration_in_months: 3 })).toBe("the payments of 3 months")
    expect(productsOf({ applies_to: { products: ["prod_1", 7] } })).toEqual(["prod_1"])
  })

  it("says how often it was used", () => {
    expect(redemptionWords({ times_redeemed: 3, max_redemptions: null })).toBe("3")
    expect(redemptionWords({ times_redeemed: 3, max_redemptions: 1000 })).toBe("3 of 1,000")
  })

  it("says why it can't be used", () => {
    const code = { active: true, expires_at: null, max_redemptions: null, times_redeemed: 0 }
    expect(unusableBecause(code, 100)).toBeUndefined()
    expect(unusableBecause({ ...code, active: false }, 100)).toBe("off")
    expect(unusableBecause({ ...code, active: false, expires_at: 100 }, 100)).toBe("expired")
    expect(unusableBecause({ ...code, active: false, max_redemptions: 2, times_redeemed: 2 }, 100)).toBe("used up")
  })
})

describe("numbers as people write them", () => {
  it("are whole numbers in digits", () => {
    expect(readCount(" 12 ")).toBe(12)
    expect(readCount("")).toBe("empty")
    for (const text of ["1.5", "-1", "1e3", "twelve", "1234567890123"]) expect(readCount(text), text).toBe("unreadable")
  })

  it("are percentages with a point or a comma", () => {
    expect(readPercentage("12.5")).toBe(12.5)
    expect(readPercentage("12,5 %")).toBe(12.5)
    expect(readPercentage("")).toBe("empty")
    for (const text of ["a", "1000", "12.345", "-5"]) expect(readPercentage(text), text).toBe("unreadable")
  })
})

describe("currencies to choose from", () => {
  it("begin with those that are used, each once, by name", () => {
    const choices = currencyChoices(["brl"])
    expect(choices[0]).toEqual({ value: "brl", label: "BRL – Brazilian Real" })
    expect(new Set(choices.map(({ value }) => value)).size).toBe(choices.length)
    expect(choices.map(({ value }) => value)).toContain("kwd")
  })
})

describe("images", () => {
  const file = { name: "cup.png", size: 1000, type: "image/png" }

  it("are checked before they are sent", () => {
    expect(imageProblem(file)).toBeUndefined()
    expect(imageProblem({ ...file, type: "image/gif" })).toMatch(/not a JPEG/)
    expect(imageProblem({ ...file, size: 5 * 1024 * 1024 })).toMatch(/5 MiB; an image may have up to 4/)
    expect(imageProblem({ ...file, size: 4 * 1024 * 1024 })).toBeUndefined()
    expect(imageProblem({ ...file, size: 0 })).toMatch(/empty/)
  })

  it("are shown only if the service itself serves them", () => {
    const own = `https://payments.example/product-images/${"a".repeat(64)}.png`
    expect(isShown(own, "https://payments.example")).toBe(true)
    expect(isShown(own, "https://other.example")).toBe(false)
    for (const url of ["https://payments.example/elsewhere.png", "javascript:alert(1)", "not a url", ""]) {
      expect(isShown(url, "https://payments.example"), url).toBe(false)
    }
  })

  it("of others are linked by their host, if a link may lead there", () => {
    expect(linkedHost("https://cdn.example/a.png")).toBe("cdn.example")
    for (const url of ["javascript:alert(1)", "data:image/png;base64,AA", "no url"]) {
      expect(linkedHost(url), url).toBeUndefined()
    }
  })
})
