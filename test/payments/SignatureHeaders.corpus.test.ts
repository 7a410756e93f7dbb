import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck, Option, Redacted } from "effect"
import Stripe from "stripe"
import { stripeNotifications } from "../../src/payments/notifications/StripeNotifications.ts"
import { casesOf } from "../harness/Corpus.ts"

const secret = "whsec_of_the_test"
const { verifyNotification, verifyThinNotification } = stripeNotifications({
  sandbox: Option.some({ secretKey: Redacted.make("sk_test_x"), webhookSecrets: [Redacted.make(secret)] }),
  production: Option.none(),
  apiUrl: Option.none(),
  checkoutSuccessUrl: "",
  checkoutCancelUrl: ""
})

const body = Buffer.from('{"id":"evt_1"}')
const now = () => Math.floor(Date.now() / 1000)

const hex = FastCheck.array(FastCheck.constantFrom(..."0123456789abcdef"), { maxLength: 80 }).map((all) => all.join(""))
const value = FastCheck.oneof(
  FastCheck.constantFrom("", " ", "=", "a".repeat(63), "a".repeat(64), `${"a".repeat(63)}é`, "\0", "__proto__"),
  hex,
  FastCheck.string({ maxLength: 80 })
)
const part = FastCheck.oneof(
  value.map((text) => `v1=${text}`),
  value.map((text) => `v0=${text}`),
  FastCheck.constantFrom("v1", "v1=", "v1==", "", "t", "t=", ",", "constructor=1"),
  FastCheck.string({ maxLength: 20 })
)
const header = FastCheck.array(part, { maxLength: 6 }).map((parts) => [`t=${now()}`, ...parts].join(","))

describe("a signature header", () => {
  it("of any odd form is refused as invalid, without a defect", () => {
    FastCheck.assert(
      FastCheck.property(header, FastCheck.constantFrom(verifyNotification, verifyThinNotification), (text, verify) => {
        expect(Effect.runSync(Effect.flip(verify(body, text)))._tag).toBe("SignatureInvalid")
      }),
      { numRuns: casesOf(10_000) }
    )
  })

  it("with a right signature is taken, beside others that are right or wrong in length", () => {
    const right = Stripe.webhooks.generateTestHeaderString({ payload: body.toString(), secret })
    expect(Effect.runSync(verifyNotification(body, right)).environment).toBe("sandbox")
    expect(Effect.runSync(verifyNotification(body, `${right},v1=${"a".repeat(64)}`)).environment).toBe("sandbox")
  })
})
