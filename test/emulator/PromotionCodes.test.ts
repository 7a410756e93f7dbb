import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { call, onEmulator, raw, somePrice, someSession, submit } from "./Harness.ts"

const someCode = (
  stripe: Stripe,
  code: string,
  coupon: Stripe.CouponCreateParams = { percent_off: 10 },
  params: Partial<Stripe.PromotionCodeCreateParams> = {}
) =>
  Effect.gen(function* () {
    const made = yield* call(() => stripe.coupons.create(coupon))
    return yield* call(() =>
      stripe.promotionCodes.create({ promotion: { type: "coupon", coupon: made.id }, code, ...params })
    )
  })

describe("a code on the hosted page", () => {
  onEmulator("lowers what is paid, and is counted once it was", function* ({ stripe }) {
    const code = yield* someCode(stripe, "TEN", { percent_off: 10 }, { max_redemptions: 1 })
    const session = yield* someSession(stripe, { allow_promotion_codes: true })
    const applied = yield* submit(session.url, { action: "apply", promotion_code: "ten" })
    expect(applied.status).toBe(200)
    expect(applied.text).toContain("9.00")
    expect(yield* call(() => stripe.checkout.sessions.retrieve(session.id))).toMatchObject({
      status: "open",
      amount_subtotal: 1000,
      amount_total: 900,
      discounts: [{ coupon: null, promotion_code: code.id }],
      total_details: { amount_discount: 100 }
    })
    const off = yield* submit(session.url, { action: "apply", promotion_code: "" })
    expect(off.status).toBe(200)
    expect((yield* call(() => stripe.checkout.sessions.retrieve(session.id))).amount_total).toBe(1000)
    yield* submit(session.url, { action: "apply", promotion_code: "TEN" })
    expect((yield* call(() => stripe.promotionCodes.retrieve(code.id))).times_redeemed).toBe(0)
    expect((yield* submit(session.url, { action: "pay" })).status).toBe(303)
    expect(
      yield* call(() =>
        stripe.checkout.sessions.retrieve(session.id, {
          expand: ["payment_intent", "line_items", "discounts.promotion_code"]
        })
      )
    ).toMatchObject({
      amount_total: 900,
      payment_intent: { amount_received: 900 },
      line_items: { data: [{ amount_subtotal: 1000, amount_discount: 100, amount_total: 900 }] },
      discounts: [{ promotion_code: { code: "TEN" } }]
    })
    expect(yield* call(() => stripe.promotionCodes.retrieve(code.id, { expand: ["promotion.coupon"] }))).toMatchObject({
      times_redeemed: 1,
      active: false,
      promotion: { coupon: { times_redeemed: 1, valid: true } }
    })
    const next = yield* someSession(stripe, { allow_promotion_codes: true })
    expect((yield* submit(next.url, { action: "pay", promotion_code: "TEN" })).status).toBe(400)
  })

  onEmulator("lowers only the products that it is for, and a fixed amount never below nothing", function* ({ stripe }) {
    const coffee = yield* somePrice(stripe, { unit_amount: 300 })
    const tea = yield* somePrice(stripe, { unit_amount: 1000 })
    const line_items = [
      { price: coffee.id, quantity: 1 },
      { price: tea.id, quantity: 1 }
    ]
    yield* someCode(stripe, "COFFEE", {
      amount_off: 500,
      currency: "brl",
      applies_to: { products: [String(coffee.product)] }
    })
    const session = yield* someSession(stripe, { allow_promotion_codes: true, line_items })
    yield* submit(session.url, { action: "pay", promotion_code: "COFFEE" })
    expect(yield* call(() => stripe.checkout.sessions.retrieve(session.id))).toMatchObject({
      amount_subtotal: 1300,
      amount_total: 1000,
      payment_status: "paid"
    })
    const onlyTea = yield* someSession(stripe, {
      allow_promotion_codes: true,
      line_items: [{ price: tea.id, quantity: 1 }]
    })
    expect((yield* submit(onlyTea.url, { action: "pay", promotion_code: "COFFEE" })).status).toBe(400)
    yield* someCode(stripe, "FREE", { percent_off: 100 })
    yield* submit(onlyTea.url, { action: "pay", promotion_code: "FREE" })
    expect(yield* call(() => stripe.checkout.sessions.retrieve(onlyTea.id))).toMatchObject({
      amount_total: 0,
      payment_status: "no_payment_required",
      payment_intent: null
    })
  })

  onEmulator("is refused if unknown, in another currency or not allowed; nothing is charged", function* ({ stripe }) {
    yield* someCode(stripe, "DOLLARS", { amount_off: 5, currency: "usd" })
    yield* someCode(stripe, "TEN")
    const session = yield* someSession(stripe, { allow_promotion_codes: true })
    for (const promotion_code of ["NONE", "DOLLARS"]) {
      const answer = yield* submit(session.url, { action: "pay", promotion_code })
      expect([promotion_code, answer.status]).toEqual([promotion_code, 400])
      expect(answer.text).toContain('role="alert"')
    }
    const closed = yield* someSession(stripe)
    expect((yield* raw("", closed.url ?? "")).text).not.toContain("promotion_code")
    expect((yield* submit(closed.url, { action: "pay", promotion_code: "TEN" })).status).toBe(400)
    expect((yield* call(() => stripe.paymentIntents.list())).data).toEqual([])
  })
})
