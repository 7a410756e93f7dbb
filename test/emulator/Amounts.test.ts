import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { amountForms, lineAmount, normalizedDecimal } from "../../src/emulator/Amounts.ts"
import type { PriceTier } from "../../src/emulator/Records.ts"
import { priceRecord as price } from "./PriceRecord.ts"

const tier = (up_to: number | null, unit: number, flat = 0): PriceTier => ({
  up_to,
  unit_amount: unit,
  unit_amount_decimal: String(unit),
  flat_amount: flat,
  flat_amount_decimal: String(flat)
})

const amount = FastCheck.nat(1_000_000)
const quantity = FastCheck.integer({ min: 1, max: 10_000 })
const tiers = FastCheck.array(FastCheck.tuple(FastCheck.integer({ min: 1, max: 500 }), amount, amount), {
  minLength: 1,
  maxLength: 6
}).map((steps) => {
  let bound = 0
  return steps.map(([width, unit, flat], index) => {
    bound += width
    return tier(index === steps.length - 1 ? null : bound, unit, flat)
  })
})

describe("what a quantity costs", () => {
  it("is the unit amount times the quantity", () => {
    FastCheck.assert(
      FastCheck.property(amount, quantity, (unit, count) => {
        expect(lineAmount(price({ unit_amount_decimal: String(unit) }), count)).toBe(unit * count)
      })
    )
  })

  it("keeps fractions of the smallest unit until the end, then rounds halves up", () => {
    const fraction = (decimal: string) => price({ unit_amount_decimal: decimal })
    expect(lineAmount(fraction("0.5"), 1)).toBe(1)
    expect(lineAmount(fraction("0.5"), 3)).toBe(2)
    expect(lineAmount(fraction("0.499999999999"), 1)).toBe(0)
    expect(lineAmount(fraction("0.000000000001"), 999_999)).toBe(0)
    expect(lineAmount(fraction("0.1"), 3)).toBe(0)
    expect(lineAmount(fraction("0.1"), 5)).toBe(1)
    expect(lineAmount(fraction("1.005"), 200)).toBe(201)
  })

  it("counts packages up or down", () => {
    const packed = (round: "up" | "down") =>
      price({ unit_amount_decimal: "100", transform_quantity: { divide_by: 10, round } })
    expect([9, 10, 11].map((count) => lineAmount(packed("up"), count))).toEqual([100, 100, 200])
    expect([9, 10, 11].map((count) => lineAmount(packed("down"), count))).toEqual([0, 100, 100])
  })

  it("is by graduated tiers the sum of each unit at its own tier and the flat amounts of the tiers entered", () => {
    FastCheck.assert(
      FastCheck.property(tiers, FastCheck.integer({ min: 1, max: 2_000 }), (steps, count) => {
        let expected = 0
        for (let unit = 1; unit <= count; unit++) {
          const index = steps.findIndex(({ up_to }) => up_to === null || unit <= up_to)
          const step = steps[index]
          const first = unit === (steps[index - 1]?.up_to ?? 0) + 1
          expected += (step?.unit_amount ?? 0) + (first ? (step?.flat_amount ?? 0) : 0)
        }
        expect(lineAmount(price({ billing_scheme: "tiered", tiers_mode: "graduated", tiers: steps }), count)).toBe(
          expected
        )
      })
    )
  })

  it("is by volume tiers all units, and one flat amount, at the tier of the quantity", () => {
    const steps = [tier(5, 100, 7), tier(10, 50), tier(null, 10, 1_000)]
    const volume = price({ billing_scheme: "tiered", tiers_mode: "volume", tiers: steps })
    expect([1, 5, 6, 10, 11].map((count) => lineAmount(volume, count))).toEqual([107, 507, 300, 500, 1_110])
  })

  it("is the preset where the payer chooses", () => {
    const chosen = (preset: number | null) => price({ custom_unit_amount: { maximum: null, minimum: null, preset } })
    expect([lineAmount(chosen(700), 1), lineAmount(chosen(null), 1)]).toEqual([700, 0])
  })
})

describe("an amount's two forms", () => {
  it("agree, and the decimal has no needless zeros", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.nat(), FastCheck.nat(999_999), (whole, fraction) => {
        const decimal = `00${whole}.${String(fraction).padStart(6, "0")}000`
        const { decimal: normalized, integer } = amountForms(undefined, decimal)
        expect(Number(normalized)).toBe(Number(decimal))
        expect(normalized).toMatch(/^(0|[1-9]\d*)(\.\d*[1-9])?$/)
        expect(integer).toBe(fraction === 0 ? whole : null)
        expect(normalizedDecimal(normalized ?? "")).toBe(normalized)
      })
    )
    expect(amountForms(5, undefined)).toEqual({ integer: 5, decimal: "5" })
    expect(amountForms(undefined, undefined)).toEqual({ integer: null, decimal: null })
  })
})
