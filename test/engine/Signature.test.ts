import { describe, expect, it } from "@effect/vitest"
import { FastCheck, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import Stripe from "stripe"
import { type SignatureInput, signatureHeaders, standardWebhooksSecretOf } from "../../src/engine/attempts/Signing.ts"

const newSecret = `whsec_${"A".repeat(43)}`
const previousSecret = `whsec_${"b".repeat(43)}`
const body = '{"id":"evt","name":"ação €"}'
const timestamp = 1_760_000_000

// Computed apart from this code, with another language's HMAC
const newSignature = "fdd0f38dcbeefed3ee31aea74c3ac84f54382a71a75d3bbaa82dc1888a9854fc"
const previousSignature = "efeef60c8fa471d1b35ec804537aa4ea721d9da04679b5bfe26be30d9c94b97e"

const eventId = `svc_evt_${"0".repeat(64)}`

const signatureHeader = (input: Omit<SignatureInput, "eventId">): string =>
  signatureHeaders({ eventId, ...input })["Service-Signature"]

const { webhooks } = new Stripe("sk_test_unused")

describe("the service's signature", () => {
  it("signs <t>.<body> with HMAC-SHA256 keyed by the full secret, prefix included", () => {
    expect(signatureHeader({ timestamp, body, secrets: [Redacted.make(newSecret)] })).toBe(
      `t=1760000000,v1=${newSignature}`
    )
  })

  it("carries one v1 per secret, the new one first, after a rotation", () => {
    const secrets = [Redacted.make(newSecret), Redacted.make(previousSecret)] as const
    expect(signatureHeader({ timestamp, body, secrets })).toBe(
      `t=1760000000,v1=${newSignature},v1=${previousSignature}`
    )
  })

  it("signs text as its UTF-8 bytes", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.fullUnicodeString(), (text) => {
        const secrets = [Redacted.make(newSecret)] as const
        const bytes = new TextEncoder().encode(text)
        expect(signatureHeader({ timestamp, body: text, secrets })).toBe(
          signatureHeader({ timestamp, body: bytes, secrets })
        )
      })
    )
  })

  it("gives what the provider's own verifier accepts, under either secret", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.jsonValue(), FastCheck.nat(4_102_444_800), (value, t) => {
        const text = JSON.stringify({ value })
        const header = signatureHeader({
          timestamp: t,
          body: text,
          secrets: [Redacted.make(newSecret), Redacted.make(previousSecret)]
        })
        for (const secret of [newSecret, previousSecret]) {
          const event: unknown = webhooks.constructEvent(text, header, secret, 300, undefined, t * 1000)
          expect(event).toEqual(JSON.parse(text))
        }
        expect(() => webhooks.constructEvent(text, header, `${newSecret}x`, 300, undefined, t * 1000)).toThrow()
      })
    )
  })

  it.each([1.5, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])("refuses %s as a timestamp", (bad) => {
    expect(() => signatureHeader({ timestamp: bad, body, secrets: [Redacted.make(newSecret)] })).toThrow(RangeError)
  })
})

describe("the Standard Webhooks signature", () => {
  it("is what the specification's own library computes, one for each secret, the new one first", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.fullUnicodeString(), FastCheck.nat(4_102_444_800), (text, t) => {
        const headers = signatureHeaders({
          eventId,
          timestamp: t,
          body: text,
          secrets: [Redacted.make(newSecret), Redacted.make(previousSecret)]
        })
        const [byNew, byPrevious] = [newSecret, previousSecret].map((secret) =>
          new Webhook(standardWebhooksSecretOf(secret)).sign(eventId, new Date(t * 1000), text)
        )
        expect(headers).toMatchObject({
          "webhook-id": eventId,
          "webhook-timestamp": String(t),
          "webhook-signature": `${byNew} ${byPrevious}`
        })
      })
    )
  })
})
