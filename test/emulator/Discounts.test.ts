import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { addMonths, periodEnd } from "../../src/emulator/checkout/Calendar.ts"
import { discounted, fits, fullPrice } from "../../src/emulator/checkout/Discounts.ts"
import type { Coupon, LineItem, Price } from "../../src/emulator/Records.ts"
import { priceRecord } from "./PriceRecord.ts"

const item = (id: number, amount: number, product = "prod_a"): LineItem => ({
  id: `li_${id}`,
  object: "item",
  adjustable_quantity: null,
  amount_discount: 0,
  amount_subtotal: amount,
  amount_tax: 0,
  amount_total: amount,
  currency: "brl",
  description: null,
  metadata: {},
  price: priceRecord({ product, tax_behavior: "unspecified", unit_amount: 1, unit_amount_decimal: "1" }),
  quantity: 1
})

const coupon = (fields: Partial<Coupon>): Coupon => ({
  id: "c",
  object: "coupon",
  amount_off: null,
  created: 0,
  currency: null,
  duration: "once",
  duration_in_months: null,
  livemode: false,
  max_redemptions: null,
  metadata: {},
  name: null,
  percent_off: null,
  redeem_by: null,
  times_redeemed: 0,
  valid: true,
  ...fields
})

const products = ["prod_a", "prod_b"] as const

const items = FastCheck.array(
  FastCheck.tuple(FastCheck.integer({ min: 0, max: 99_999_999 }), FastCheck.constantFrom(...products)),
  { minLength: 1, maxLength: 20 }
).map((all) => all.map(([amount, product], index) => item(index, amount, product)))

const total = (all: ReadonlyArray<LineItem>, field: "amount_subtotal" | "amount_discount" | "amount_total") =>
  all.reduce((sum, one) => sum + one[field], 0)

describe("a discount", () => {
  it("of a fixed amount takes off just that amount, or all there is to take", () => {
    FastCheck.assert(
      FastCheck.property(items, FastCheck.integer({ min: 1, max: 99_999_999 }), (all, amount_off) => {
        const after = discounted(all, coupon({ amount_off, currency: "brl" }))
        expect(total(after, "amount_discount")).toBe(Math.min(amount_off, total(all, "amount_subtotal")))
        for (const one of after) expect(one.amount_total).toBeGreaterThanOrEqual(0)
      })
    )
  })

  it("of a percentage is within half a unit of its share of each item", () => {
    FastCheck.assert(
      FastCheck.property(items, FastCheck.integer({ min: 1, max: 1_000_000 }), (all, tenThousandths) => {
        const percent_off = tenThousandths / 10_000
        for (const one of discounted(all, coupon({ percent_off }))) {
          const exact = (BigInt(one.amount_subtotal) * BigInt(tenThousandths)) / 10_000n
          expect(Math.abs(one.amount_discount - Number(exact) / 100)).toBeLessThanOrEqual(0.51)
          expect(one.amount_total).toBe(one.amount_subtotal - one.amount_discount)
        }
      })
    )
  })

  it("for some products leaves the others at their price, and fits only where there are such", () => {
    FastCheck.assert(
      FastCheck.property(items, (all) => {
        const half = coupon({ percent_off: 50, applies_to: { products: ["prod_a"] } })
        for (const one of discounted(all, half)) {
          if (one.price.product === "prod_b") expect(one.amount_total).toBe(one.amount_subtotal)
        }
        expect(fits(all, "brl", half)).toBe(all.some(({ price }) => price.product === "prod_a"))
      })
    )
  })

  it("of an amount in another currency does not fit, and can be taken off again", () => {
    const all = [item(0, 100), item(1, 50)]
    expect(fits(all, "brl", coupon({ amount_off: 5, currency: "usd" }))).toBe(false)
    expect(fits(all, "brl", coupon({ amount_off: 5, currency: "brl" }))).toBe(true)
    expect(fullPrice(discounted(all, coupon({ percent_off: 30 })))).toEqual(all)
  })
})

const at = (text: string) => Date.parse(text) / 1_000

describe("a billing period", () => {
  it("ends on the same day of a later month, or on that month's last", () => {
    expect(addMonths(at("2026-01-31T10:20:30Z"), 1)).toBe(at("2026-02-28T10:20:30Z"))
    expect(addMonths(at("2024-01-31T00:00:00Z"), 1)).toBe(at("2024-02-29T00:00:00Z"))
    expect(addMonths(at("2026-11-30T23:59:59Z"), 3)).toBe(at("2027-02-28T23:59:59Z"))
    expect(addMonths(at("2024-02-29T12:00:00Z"), 12)).toBe(at("2025-02-28T12:00:00Z"))
  })

  it("is as long as its interval says", () => {
    const start = at("2026-03-10T08:00:00Z")
    const end = (interval: NonNullable<Price["recurring"]>["interval"], interval_count: number) =>
      periodEnd(start, { interval, interval_count, meter: null, trial_period_days: null, usage_type: "licensed" })
    expect(end("day", 10)).toBe(at("2026-03-20T08:00:00Z"))
    expect(end("week", 2)).toBe(at("2026-03-24T08:00:00Z"))
    expect(end("month", 3)).toBe(at("2026-06-10T08:00:00Z"))
    expect(end("year", 1)).toBe(at("2027-03-10T08:00:00Z"))
  })
})
