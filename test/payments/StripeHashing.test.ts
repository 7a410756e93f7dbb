import { createHmac } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { FastCheck, Redacted } from "effect"
import { StripeHashing } from "../../src/payments/notifications/StripeNotifications.ts"

const expected = (text: string, secret: string) => createHmac("sha256", secret).update(text, "utf8").digest("hex")

it("the hashing of notifications is HMAC-SHA256, whatever the text and the secret", () => {
  FastCheck.assert(
    FastCheck.property(
      FastCheck.fullUnicodeString({ maxLength: 200 }),
      FastCheck.string({ minLength: 1, maxLength: 100 }),
      (text, secret) =>
        new StripeHashing(Redacted.make(secret)).computeHMACSignature(text, secret) === expected(text, secret)
    )
  )
})

it("the hashing of notifications is the same for short texts and for those too long to keep memory for", () => {
  const secret = "whsec_test"
  const hashing = new StripeHashing(Redacted.make(secret))
  for (const length of [0, 1, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 1024 * 1024, 10]) {
    const text = "é€x".repeat(Math.ceil(length / 3)).slice(0, length)
    expect(hashing.computeHMACSignature(text, secret), String(length)).toBe(expected(text, secret))
  }
})
