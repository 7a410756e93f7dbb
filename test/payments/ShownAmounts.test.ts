import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { digitsOf } from "../../src/console/components/amounts.ts"
import { amountForm, amountIn, amountText, money } from "../../src/emulator/Money.ts"
import { formatAmount } from "../../src/platform/kit/Amounts.ts"

/** The slices that show amounts stand apart, and still have to agree on what an amount is. */

const currency = FastCheck.constantFrom("brl", "huf", "idr", "isk", "jpy", "kwd", "lbp", "twd", "ugx", "usd")
const amount = FastCheck.nat(99_999_999)

describe("amounts that payers see", () => {
  it("have the digits that the provider counts in", () => {
    expect(formatAmount(1500, "brl")).toBe("R$15.00")
    expect(formatAmount(150_000, "huf")).toBe("HUF\u00a01,500.00")
    expect(formatAmount(1500, "jpy")).toBe("¥1,500")
    expect(formatAmount(1500, "kwd")).toBe("KWD\u00a01.500")
  })

  it("are the same on checkout pages, at the emulator and in the console", () => {
    FastCheck.assert(
      FastCheck.property(amount, currency, (given, code) => {
        expect(money(given, code)).toBe(formatAmount(given, code))
        const [, fraction = ""] = amountText(given, code).split(".")
        expect(fraction).toHaveLength(digitsOf(code))
      })
    )
  })

  it("are read at the emulator as they are written there", () => {
    FastCheck.assert(
      FastCheck.property(amount, currency, (given, code) => {
        const text = amountText(given, code)
        expect(amountForm.test(text)).toBe(true)
        expect(amountIn(text, code)).toBe(given)
      })
    )
    expect(amountIn("15,5", "brl")).toBe(1550)
    expect(amountIn("1.505", "brl")).toBeUndefined()
    expect(amountIn("15.0", "jpy")).toBeUndefined()
  })
})
