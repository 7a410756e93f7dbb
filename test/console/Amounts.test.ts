import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import {
  amountToText,
  digitsOf,
  formatAmount,
  formatDecimalAmount,
  readAmount
} from "../../src/console/components/amounts.ts"

const currency = FastCheck.constantFrom("brl", "jpy", "kwd", "usd", "isk", "ugx", "all", "clp", "idr")
const amount = FastCheck.integer({ min: 0, max: 999_999_999_999 })

const read = (text: string, code: string) => {
  const written = readAmount(text, code)
  return written.kind === "amount" ? written.amount : written.kind
}

describe("amounts as people read them", () => {
  it("have the digits that the provider counts in", () => {
    expect(formatAmount(1500, "brl")).toBe("R$15.00")
    expect(formatAmount(1500, "jpy")).toBe("¥1,500")
    expect(formatAmount(1500, "kwd")).toBe("KWD\u00a01.500")
  })

  it("have two digits where everyday use drops them, since the provider counts hundredths", () => {
    for (const code of ["all", "rsd", "isk", "ugx", "idr", "huf", "twd"]) {
      expect(digitsOf(code), code).toBe(2)
      expect(formatAmount(1500, code), code).toContain("15.00")
    }
  })

  it("are negative where money went out", () => {
    expect(formatAmount(-1500, "brl")).toBe("-R$15.00")
    expect(formatAmount(-5, "usd")).toBe("-$0.05")
  })

  it("lose no digit of a sum that is too large for a number", () => {
    expect(formatAmount("900719925474099312", "brl")).toBe("R$9,007,199,254,740,993.12")
    expect(formatAmount(900719925474099312n, "jpy")).toBe("¥900,719,925,474,099,312")
  })

  it("show fractions of the smallest unit where a price has them", () => {
    expect(formatDecimalAmount("10.5", "brl")).toBe("R$0.105")
    expect(formatDecimalAmount("1500", "brl")).toBe("R$15.00")
    expect(formatDecimalAmount("0.123456789012", "jpy")).toBe("¥0.123456789012")
  })

  it("show what no amount is as it came", () => {
    expect(formatAmount("much", "brl")).toBe("much")
    expect(formatAmount(1500, "")).toBe("15.00")
    expect(formatAmount(1500, "b1")).toBe("15.00 b1")
  })
})

describe("amounts as people write them", () => {
  it("are read as they were written", () => {
    FastCheck.assert(
      FastCheck.property(amount, currency, (given, code) => {
        expect(read(amountToText(given, code), code)).toBe(given)
      })
    )
  })

  it("may have fewer digits after the point, and spaces around", () => {
    expect(read(" 15 ", "brl")).toBe(1500)
    expect(read("15.", "brl")).toBe(1500)
    expect(read("15.5", "brl")).toBe(1550)
    expect(read("1.5", "kwd")).toBe(1500)
    expect(read("0015", "jpy")).toBe(15)
  })

  it("may have a comma where it can only be the decimal sign", () => {
    expect(read("15,50", "brl")).toBe(1550)
    expect(read("1,5", "kwd")).toBe(1500)
  })

  it("are refused rather than guessed where a comma may separate thousands", () => {
    expect(read("1,500", "brl")).toBe("problem")
    expect(read("1,500", "kwd")).toBe("problem")
    expect(read("1,500", "jpy")).toBe("problem")
    expect(read("1,500.00", "brl")).toBe("problem")
  })

  it("have no more digits than the currency", () => {
    expect(read("15.005", "brl")).toBe("problem")
    expect(read("15.0", "jpy")).toBe("problem")
    expect(read("1.5005", "kwd")).toBe("problem")
  })

  it("are empty or a problem otherwise, whatever is typed", () => {
    for (const text of ["", "  "]) expect(read(text, "brl")).toBe("empty")
    for (const text of ["-1", "R$ 5", "1e3", ".", "1.2.3", "٣", "Infinity", "9999999999999", "1".repeat(100_000)]) {
      expect(read(text, "brl"), text.slice(0, 20)).toBe("problem")
    }
  })

  it("are whole numbers of at most twelve digits, or nothing, for any text", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string(), currency, (text, code) => {
        const written = readAmount(text, code)
        if (written.kind !== "amount") return
        expect(Number.isInteger(written.amount)).toBe(true)
        expect(written.amount).toBeGreaterThanOrEqual(0)
        expect(written.amount).toBeLessThan(1e12)
      })
    )
  })
})
