import { describe, expect, it } from "@effect/vitest"
import { Either, FastCheck, Schema } from "effect"
import { Envelope, encodeEnvelope } from "../../src/events/Envelope.ts"
import type { Translation } from "../../src/events/EventReader.ts"
import { parseProviderEvent, type SoldItems } from "../../src/events/stripe/ProviderEvent.ts"
import { translate, translatedProviderTypes } from "../../src/events/stripe/Translate.ts"
import {
  charge,
  checkoutSession,
  dispute,
  failedPaymentIntent,
  invoice,
  paymentIntent,
  payout,
  secretMark,
  snapshot,
  subscription
} from "./ProviderEvents.ts"

const organizationId = "0199c0de-0000-7000-8000-000000000001"

const objects: Record<string, Record<string, unknown>> = {
  "payment_intent.succeeded": paymentIntent,
  "payment_intent.payment_failed": failedPaymentIntent,
  "charge.refunded": charge,
  "checkout.session.completed": checkoutSession,
  "checkout.session.async_payment_succeeded": checkoutSession,
  "checkout.session.async_payment_failed": checkoutSession,
  "charge.dispute.created": dispute,
  "charge.dispute.closed": dispute,
  "customer.subscription.created": subscription,
  "customer.subscription.deleted": subscription,
  "invoice.paid": invoice,
  "invoice.payment_failed": invoice,
  "payout.paid": payout,
  "payout.failed": payout,
  "payout.created": payout,
  "payout.updated": payout,
  "payout.canceled": payout
}

const context = { environment: "sandbox", organizationId } as const

const translated = (input: unknown, soldItems: SoldItems | null = null): Translation | { _tag: "Refused" } =>
  Either.match(parseProviderEvent(input), {
    onLeft: () => ({ _tag: "Refused" }),
    onRight: (event) => translate({ ...context, event, soldItems })
  })

/** Types and data of what a provider event gives rise to. */
const news = (type: string, object: unknown, soldItems: SoldItems | null = null) => {
  const translation = translated(snapshot(type, object), soldItems)
  return translation._tag === "Translated" ? translation.events.map(({ data, type }) => [type, data]) : translation._tag
}

describe("payment events", () => {
  it("tell of a failed payment with the error's code, or null without one", () => {
    const data = { payment_id: "pi_1", amount: 1500, currency: "brl" }
    const type = "payment_intent.payment_failed"
    expect(news(type, failedPaymentIntent)).toEqual([["payment.failed", { ...data, failure_code: "card_declined" }]])
    const { last_payment_error: _, ...withoutError } = failedPaymentIntent
    for (const object of [
      withoutError,
      { ...withoutError, last_payment_error: null },
      { ...withoutError, last_payment_error: { type: "api_error" } },
      { ...withoutError, last_payment_error: { type: "api_error", code: null } }
    ]) {
      expect(news(type, object)).toEqual([["payment.failed", { ...data, failure_code: null }]])
    }
  })

  it("tell of a refund with what was refunded so far, and of the payment where there is one", () => {
    const data = { charge_id: "ch_1", payment_id: "pi_1", amount_refunded: 500, currency: "brl", fully_refunded: false }
    expect(news("charge.refunded", charge)).toEqual([["payment.refunded", data]])
    expect(news("charge.refunded", { ...charge, payment_intent: paymentIntent })).toEqual([["payment.refunded", data]])
    expect(news("charge.refunded", { ...charge, payment_intent: null, amount_refunded: 1500, refunded: true })).toEqual(
      [["payment.refunded", { ...data, payment_id: null, amount_refunded: 1500, fully_refunded: true }]]
    )
  })
})

describe.each([
  ["checkout.session.completed", "checkout.completed"],
  ["checkout.session.async_payment_succeeded", "checkout.payment_succeeded"],
  ["checkout.session.async_payment_failed", "checkout.payment_failed"]
])("%s", (providerType, type) => {
  const data = {
    session_id: "cs_test_1",
    mode: "payment",
    payment_status: "paid",
    payment_id: "pi_1",
    subscription_id: null,
    amount_total: 1500,
    currency: "brl",
    price_ids: null,
    product_ids: null
  }

  it("lists what the session sells where this service created it, and null where it did not", () => {
    expect(news(providerType, checkoutSession)).toEqual([[type, data]])
    const soldItems = { priceIds: ["price_1", "price_2"], productIds: ["prod_1"] }
    expect(news(providerType, checkoutSession, soldItems)).toEqual([
      [type, { ...data, price_ids: ["price_1", "price_2"], product_ids: ["prod_1"] }]
    ])
  })

  it("gives null for what the session lacks, and the id of what is expanded", () => {
    const free = { id: "cs_test_1", mode: "payment", payment_status: "no_payment_required" }
    expect(news(providerType, free)).toEqual([
      [type, { ...data, payment_status: "no_payment_required", payment_id: null, amount_total: null, currency: null }]
    ])
    const subscribed = {
      ...checkoutSession,
      mode: "subscription",
      payment_intent: null,
      subscription: { id: "sub_1", metadata: { a: secretMark } }
    }
    expect(news(providerType, subscribed)).toEqual([
      [type, { ...data, mode: "subscription", payment_id: null, subscription_id: "sub_1" }]
    ])
  })

  it("does not take a session for paid that is not", () => {
    const unpaid = { ...checkoutSession, payment_status: "unpaid" }
    expect(news(providerType, unpaid)).toEqual([[type, { ...data, payment_status: "unpaid" }]])
  })
})

describe("translate", () => {
  it("translates exactly these provider types", () => {
    expect([...translatedProviderTypes].sort()).toEqual(Object.keys(objects).sort())
  })

  it("makes nothing of an event of the other mode", () => {
    for (const [type, object] of Object.entries(objects)) {
      expect(translated(snapshot(type, object, { livemode: true }))._tag).toBe("WrongMode")
      const live = Either.getOrThrow(parseProviderEvent(snapshot(type, object)))
      expect(translate({ organizationId, environment: "production", event: live, soldItems: null })._tag).toBe(
        "WrongMode"
      )
    }
  })

  it("carries environment, organization, provider event and its time into the envelope", () => {
    const event = Either.getOrThrow(
      parseProviderEvent(
        snapshot("payment_intent.succeeded", paymentIntent, { livemode: true, created: 1_700_000_000 })
      )
    )
    const translation = translate({ environment: "production", organizationId, event, soldItems: null })
    expect(translation).toMatchObject({
      _tag: "Translated",
      events: [
        {
          livemode: true,
          organization_id: organizationId,
          created_at: "2023-11-14T22:13:20.000Z",
          source: { provider: "stripe", event_id: "evt_1Q0" }
        }
      ]
    })
    expect(translation._tag === "Translated" && translation.events.every((event) => !("test" in event))).toBe(true)
  })

  it("names the fields that are missing or wrong, all of them, and none of their values", () => {
    const translation = translated(
      snapshot("payment_intent.succeeded", { ...paymentIntent, amount_received: secretMark, currency: secretMark })
    )
    expect(translation).toEqual({
      _tag: "Malformed",
      reason: "missing or not as expected: event.data.object.amount_received, event.data.object.currency"
    })
  })

  it("takes every wrong or missing field that it needs for malformed", () => {
    const needed: Record<string, ReadonlyArray<string>> = {
      "payment_intent.succeeded": ["id", "amount_received", "currency"],
      "payment_intent.payment_failed": ["id", "amount", "currency"],
      "charge.refunded": ["id", "amount_refunded", "currency", "refunded"],
      "checkout.session.completed": ["id", "mode", "payment_status"],
      "checkout.session.async_payment_succeeded": ["id", "mode", "payment_status"],
      "checkout.session.async_payment_failed": ["id", "mode", "payment_status"]
    }
    for (const [type, fields] of Object.entries(needed)) {
      for (const field of fields) {
        for (const bad of [null, [], {}, 1.5, ""]) {
          expect([type, field, bad, news(type, { ...objects[type], [field]: bad })]).toEqual([
            type,
            field,
            bad,
            "Malformed"
          ])
        }
        const { [field]: _, ...without } = objects[type] ?? {}
        expect([type, field, news(type, without)]).toEqual([type, field, "Malformed"])
      }
    }
    for (const bad of [5, true, [], {}, { id: 5 }, ""]) {
      expect(news("charge.refunded", { ...charge, payment_intent: bad })).toBe("Malformed")
      expect(news("checkout.session.completed", { ...checkoutSession, subscription: bad })).toBe("Malformed")
      expect(news("payment_intent.payment_failed", { ...failedPaymentIntent, last_payment_error: { code: bad } })).toBe(
        "Malformed"
      )
    }
  })
})

describe("an invoice in a shape of later", () => {
  const { billing_reason: _reason, ...withoutReason } = invoice
  const { parent: _parent, ...withoutParent } = invoice
  const at = (...fields: ReadonlyArray<string>) => ({
    _tag: "Malformed",
    reason: `missing or not as expected: ${fields.map((field) => `event.data.object.${field}`).join(", ")}`
  })

  it.each([
    ["that was moved to another field", withoutParent, ["parent", "billing_reason"]],
    ["that is null", { ...invoice, parent: null }, ["parent", "billing_reason"]],
    [
      "whose reason has another name",
      { ...invoice, parent: null, billing_reason: "subscription_create" },
      ["parent", "billing_reason"]
    ]
  ])("is malformed for a subscription %s, as long as its reason is one", (_, object, fields) => {
    expect(translated(snapshot("invoice.paid", object))).toEqual(at(...fields))
    expect(translated(snapshot("invoice.payment_failed", object))).toEqual(at(...fields))
  })

  it.each([
    ["is missing", withoutReason],
    ["is one that nobody knows", { ...invoice, billing_reason: "subscription_renewal" }]
  ])("is malformed where the reason %s, since it may be a renewal", (_, object) => {
    expect(translated(snapshot("invoice.paid", object))).toEqual(at("billing_reason"))
    expect(translated(snapshot("invoice.payment_failed", object))).toMatchObject({ _tag: "Translated" })
  })

  it("is ignored where it is no subscription's, or renews none", () => {
    for (const object of [
      { ...withoutParent, billing_reason: "manual" },
      { ...withoutParent, billing_reason: null },
      { ...invoice, parent: null, billing_reason: "quote_accept" },
      { ...invoice, billing_reason: "subscription_create" },
      { ...invoice, billing_reason: "manual" }
    ]) {
      expect(translated(snapshot("invoice.paid", object))).toEqual({ _tag: "Ignored" })
    }
  })
})

describe("what a schema refuses", () => {
  const deep = () => JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`)

  it("is named by its path, once, however deep or large the value is", () => {
    const wide = Array.from({ length: 200_000 }, () => secretMark)
    for (const value of [deep(), wide, { id: deep() }, { id: wide }]) {
      const translation = translated(snapshot("charge.refunded", { ...charge, currency: value, payment_intent: value }))
      if (translation._tag !== "Malformed") throw new Error(translation._tag)
      expect(translation.reason).toMatch(
        /^missing or not as expected: event\.data\.object\.\S+(, event\.data\.object\.\S+)+$/
      )
      expect(translation.reason).toContain("event.data.object.currency")
      expect(translation.reason.length).toBeLessThan(200)
    }
    expect(parseProviderEvent(deep())).toEqual(
      Either.left({ _tag: "Malformed", reason: "missing or not as expected: event" })
    )
  })
})

describe("parseProviderEvent", () => {
  it("reads a missing account as null", () => {
    for (const account of [undefined, null]) {
      const input = JSON.parse(JSON.stringify(snapshot("balance.available", {}, { account })))
      expect(Either.map(parseProviderEvent(input), (event) => event.account)).toEqual(Either.right(null))
    }
  })

  it.each([
    ["id", [undefined, null, "", 1, "a\nb", "a\u0000b", "x".repeat(256), ["evt"]]],
    ["type", [undefined, null, "", 1, "a b"]],
    ["created", [undefined, null, "1760000000", -1, 1.5, 253_402_300_800, 1e300]],
    ["livemode", [undefined, null, "false", 0]],
    ["account", ["", 1, {}, "acct_1\n"]],
    ["data", [undefined, null, {}, [], { object: null }, { object: [] }, { object: "pi_1" }]]
  ])("refuses an event whose %s is no such thing", (field, values) => {
    for (const value of values) {
      const parsed = parseProviderEvent(snapshot("payment_intent.succeeded", paymentIntent, { [field]: value }))
      expect([value, Either.isLeft(parsed)]).toEqual([value, true])
      expect(Either.isLeft(parsed) && parsed.left.reason).toContain(`event.${field}`)
    }
  })
})

describe("translation, for any input", () => {
  const json = FastCheck.jsonValue({ maxDepth: 4 })
  const tags = ["Translated", "Ignored", "WrongMode", "Malformed", "Refused"]

  it("has an outcome and never throws", () => {
    FastCheck.assert(
      FastCheck.property(json, FastCheck.constantFrom(...translatedProviderTypes), (value, type) => {
        expect(tags).toContain(translated(value)._tag)
        expect(tags).toContain(translated(snapshot(type, value))._tag)
      })
    )
  })

  it("has an outcome when any one field of a real event is any JSON whatever", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.constantFrom(...translatedProviderTypes).chain((type) =>
          FastCheck.tuple(
            FastCheck.constant(type),
            FastCheck.constantFrom(...Object.keys(objects[type] ?? {})),
            FastCheck.oneof(json, FastCheck.string(), FastCheck.double(), FastCheck.integer())
          )
        ),
        ([type, field, value]) => {
          const translation = translated(snapshot(type, { ...objects[type], [field]: value }))
          // An invoice that says that it was made for another reason is no news
          const silent = type.startsWith("invoice.") && field === "billing_reason"
          expect(["Translated", "Malformed", ...(silent ? ["Ignored"] : [])]).toContain(translation._tag)
          if (translation._tag !== "Translated") return
          for (const event of translation.events) {
            expect(() => Schema.validateSync(Envelope, { onExcessProperty: "error" })(event)).not.toThrow()
          }
        }
      ),
      { numRuns: 500 }
    )
  })

  it("gives valid envelopes, the same every time, in which nothing of any further field shows", () => {
    const extra = FastCheck.dictionary(
      FastCheck.string().map((key) => `x_${secretMark}_${key}`),
      json.map((value) => ({ [secretMark]: value })),
      { maxKeys: 5 }
    )
    const soldItems = FastCheck.option(
      FastCheck.record({
        priceIds: FastCheck.array(FastCheck.stringMatching(/^price_[a-z]{3}$/)),
        productIds: FastCheck.array(FastCheck.stringMatching(/^prod_[a-z]{3}$/))
      })
    )
    FastCheck.assert(
      FastCheck.property(
        FastCheck.constantFrom(...translatedProviderTypes),
        extra,
        extra,
        soldItems,
        (type, inObject, inEvent, sold) => {
          const input = snapshot(type, { ...inObject, ...objects[type] }, inEvent)
          const translation = translated(input, sold)
          if (translation._tag !== "Translated") throw new Error(translation._tag)
          for (const event of translation.events) {
            Schema.validateSync(Envelope, { onExcessProperty: "error" })(event)
            expect(encodeEnvelope(event)).not.toContain(secretMark)
          }
          expect(translated(structuredClone(input), sold)).toEqual(translation)
        }
      )
    )
  })
})
