import { describe, expect, it } from "@effect/vitest"
import { Either, FastCheck, Schema } from "effect"
import { OrganizationName, unlinked } from "../../src/identity/organizations/OrganizationName.ts"

const isTaken = (name: string): boolean => Either.isRight(Schema.decodeEither(OrganizationName)(name))

describe("the name of an organization", () => {
  it.each([
    "Bakery",
    "Amazon.com Inc.",
    "Booking.com B.V.",
    "S.A./N.V. Delhaize",
    "Padaria São João Ltda.",
    "Müller & Söhne GmbH & Co. KG",
    "Shop @ Home",
    "株式会社サンプル",
    "شرکت نمونه\u200cها",
    "Family 👩\u200d👧",
    "Version 2.10/3",
    "A: the first letter",
    "1/2 price"
  ])("is taken: %s", (name) => {
    expect(isTaken(name)).toBe(true)
  })

  it.each([
    "Pay at https://evil.example",
    "HTTPS://EVIL.EXAMPLE",
    "www.evil.example",
    "(www2.evil.example)",
    "evil.example/pay",
    "evil.example?x=1",
    "evil.example:8443",
    "203.0.113.7/pay",
    "mailto:eve@evil.example",
    "tel:+15550100",
    "javascript:alert(1)",
    "eve@evil.example",
    "ｈｔｔｐｓ：／／evil.example",
    "evil。example/pay",
    "evil․example∕pay",
    "ht\u200dtps://evil.example",
    "Bakery\u202egnp.exe",
    "Ba\u200bkery",
    "Ba\u00adkery",
    "\u2066Bakery\u2069",
    "Bakery\u2028Your account is locked",
    "Bakery\u{e0041}",
    "Bakery\nYour account is locked"
  ])("is refused: %j", (name) => {
    expect(isTaken(name)).toBe(false)
  })

  // A pattern that goes back and forth on one of them would never end
  it.each(["a.", "ﷺ", "a@", "a.a@", "1.", "www", "http:", "a-", ".:", "\u200d"])(
    "is judged if its 200 characters repeat %j",
    (part) => expect(typeof isTaken(part.repeat(200).slice(0, 200))).toBe("boolean")
  )

  it("has no unbroken link in a mail, and is the same to who reads it", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string(), (name) => {
        const shown = unlinked(name)
        expect(shown.replaceAll("\u2060", "")).toBe(name.replaceAll("\u2060", ""))
        expect(shown).not.toMatch(/[^\s\u2060][.:/@][^\s\u2060]/)
      })
    )
  })
})
