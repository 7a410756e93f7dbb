import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { call, connected, raw, refusal, said, sdk, somePrice, someSession, submit } from "./Harness.ts"

const now = () => Math.floor(Date.now() / 1_000)

/** A coupon and a code of it. */
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

/** What a raw creation is refused with. */
const refusedAs = (stripe: Stripe, path: string, params: object) =>
  Effect.map(
    said(() => stripe.rawRequest("POST", path, { ...params })),
    ({ code, param, statusCode }) => [statusCode, code, param]
  )

describe("coupons", () => {
  it.scopedLive("are made, read, changed, listed and deleted, and told of", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      const product = yield* call(() => stripe.products.create({ name: "Coffee" }))
      const coupon = yield* call(() =>
        stripe.coupons.create({
          percent_off: 33.5,
          duration: "repeating",
          duration_in_months: 3,
          max_redemptions: 9,
          applies_to: { products: [product.id] },
          name: "A third"
        })
      )
      expect(coupon).toMatchObject({
        percent_off: 33.5,
        amount_off: null,
        currency: null,
        duration: "repeating",
        duration_in_months: 3,
        max_redemptions: 9,
        times_redeemed: 0,
        valid: true
      })
      expect(coupon.id).toMatch(/^[A-Z0-9]{8}$/)
      expect(coupon).not.toHaveProperty("applies_to")
      expect(yield* call(() => stripe.coupons.retrieve(coupon.id, { expand: ["applies_to"] }))).toMatchObject({
        applies_to: { products: [product.id] }
      })
      const fixed = yield* call(() => stripe.coupons.create({ id: "FIVE-OFF", amount_off: 500, currency: "BRL" }))
      expect(fixed).toMatchObject({ id: "FIVE-OFF", amount_off: 500, currency: "brl", duration: "once" })
      expect((yield* call(() => stripe.coupons.list())).data.map(({ id }) => id)).toEqual(["FIVE-OFF", coupon.id])
      expect(
        yield* call(() => stripe.coupons.update("FIVE-OFF", { name: "Five", metadata: { a: "1" } }))
      ).toMatchObject({
        name: "Five",
        metadata: { a: "1" }
      })
      const code = yield* call(() => stripe.promotionCodes.create({ promotion: { type: "coupon", coupon: fixed.id } }))
      expect(code.code).toMatch(/^[A-Z0-9]{8}$/)
      expect(yield* call(() => stripe.coupons.del(fixed.id))).toMatchObject({ id: fixed.id, deleted: true })
      expect((yield* call(() => stripe.promotionCodes.retrieve(code.id))).active).toBe(false)
      expect(yield* said(() => stripe.coupons.retrieve(fixed.id))).toMatchObject({ statusCode: 404 })
      const types = (yield* call(() => stripe.events.list({ type: "coupon.*" }))).data.map(({ type }) => type)
      expect(types.reverse()).toEqual(["coupon.created", "coupon.created", "coupon.updated", "coupon.deleted"])
      const other = sdk(emulator.url, yield* emulator.ensureAccount())
      expect(yield* said(() => other.coupons.retrieve(coupon.id))).toMatchObject({
        statusCode: 404,
        code: "resource_missing"
      })
    })
  )

  it.scopedLive("refuse what makes no coupon, by the parameter's name", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      yield* call(() => stripe.coupons.create({ id: "TAKEN", percent_off: 1 }))
      const product = yield* call(() => stripe.products.create({ name: "Coffee" }))
      const refused = (params: object) => refusedAs(stripe, "/v1/coupons", params)
      expect(yield* refused({})).toEqual([400, "parameter_missing", "percent_off"])
      expect(yield* refused({ percent_off: 5, amount_off: 5, currency: "brl" })).toEqual([
        400,
        "parameters_exclusive",
        "percent_off"
      ])
      for (const percent_off of ["0", "100.1", "-1", "many", "1.23456"]) {
        expect(yield* refused({ percent_off })).toEqual([400, undefined, "percent_off"])
      }
      expect(yield* refused({ amount_off: 5 })).toEqual([400, "parameter_missing", "currency"])
      expect(yield* refused({ amount_off: 0, currency: "brl" })).toEqual([
        400,
        "parameter_invalid_integer",
        "amount_off"
      ])
      expect(yield* refused({ percent_off: 5, duration: "repeating" })).toEqual([
        400,
        "parameter_missing",
        "duration_in_months"
      ])
      expect(yield* refused({ percent_off: 5, duration: "once", duration_in_months: 2 })).toEqual([
        400,
        undefined,
        "duration_in_months"
      ])
      expect(yield* refused({ percent_off: 5, duration: "weekly" })).toEqual([400, undefined, "duration"])
      expect(yield* refused({ percent_off: 5, redeem_by: now() - 1 })).toEqual([400, undefined, "redeem_by"])
      expect(yield* refused({ percent_off: 5, max_redemptions: 0 })).toEqual([
        400,
        "parameter_invalid_integer",
        "max_redemptions"
      ])
      expect(yield* refused({ percent_off: 5, applies_to: { products: [product.id, "prod_none"] } })).toEqual([
        400,
        "resource_missing",
        "applies_to[products][1]"
      ])
      expect(yield* refused({ percent_off: 5, id: "TAKEN" })).toEqual([400, "resource_already_exists", "id"])
      expect(yield* refused({ percent_off: 5, colour: "red" })).toEqual([400, "parameter_unknown", "colour"])
      expect((yield* call(() => stripe.coupons.list())).data).toHaveLength(1)
    })
  )
})

describe("promotion codes", () => {
  it.scopedLive("are made under their coupon, which is shown where it is expanded", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const product = yield* call(() => stripe.products.create({ name: "Coffee" }))
      const expires_at = now() + 1_000
      const code = yield* someCode(
        stripe,
        "Welcome10",
        { percent_off: 10, applies_to: { products: [product.id] } },
        { expires_at, max_redemptions: 3, expand: ["promotion.coupon.applies_to"] }
      )
      expect(code).toMatchObject({
        object: "promotion_code",
        active: true,
        code: "Welcome10",
        expires_at,
        max_redemptions: 3,
        times_redeemed: 0,
        promotion: { type: "coupon", coupon: { percent_off: 10, applies_to: { products: [product.id] } } }
      })
      expect(code.id).toMatch(/^promo_[A-Za-z0-9]{24}$/)
      const plain = yield* call(() => stripe.promotionCodes.retrieve(code.id))
      expect(typeof plain.promotion.coupon).toBe("string")
      expect(yield* said(() => stripe.promotionCodes.retrieve(code.id, { expand: ["promotion"] }))).toMatchObject({
        statusCode: 400,
        param: "expand"
      })
      const list = yield* call(() => stripe.promotionCodes.list({ expand: ["data.promotion.coupon"] }))
      expect(list.data[0]?.promotion.coupon).toMatchObject({ object: "coupon" })
    })
  )

  it.scopedLive("are unique among the active ones, whatever the case, and the refusal is a message only", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      const first = yield* someCode(stripe, "SUMMER")
      const coupon = String(first.promotion.coupon)
      const again = (code: string) =>
        refusal(() => stripe.promotionCodes.create({ promotion: { type: "coupon", coupon }, code }))
      const duplicate = yield* again("summer")
      expect([duplicate.statusCode, duplicate.code, duplicate.param, duplicate.rawType]).toEqual([
        400,
        undefined,
        undefined,
        "invalid_request_error"
      ])
      expect(duplicate.message).toContain("already exists")

      expect((yield* call(() => stripe.promotionCodes.update(first.id, { active: false }))).active).toBe(false)
      const second = yield* someCode(stripe, "SUMMER")
      expect(yield* said(() => stripe.promotionCodes.update(first.id, { active: true }))).toMatchObject({
        statusCode: 400
      })
      yield* call(() => stripe.promotionCodes.update(second.id, { active: false }))
      expect((yield* call(() => stripe.promotionCodes.update(first.id, { active: true }))).active).toBe(true)
      const elsewhere = sdk(emulator.url, yield* emulator.ensureAccount())
      expect((yield* someCode(elsewhere, "SUMMER")).active).toBe(true)

      const ids = (params: Stripe.PromotionCodeListParams) =>
        Effect.map(
          call(() => stripe.promotionCodes.list(params)),
          ({ data }) => data.map(({ id }) => id)
        )
      expect(yield* ids({ code: "sUmMeR" })).toEqual([second.id, first.id])
      expect(yield* ids({ active: true })).toEqual([first.id])
      expect(yield* ids({ active: false, code: "SUMMER" })).toEqual([second.id])
      expect(yield* ids({ coupon })).toEqual([first.id])
      expect(yield* ids({ created: { gt: second.created } })).toEqual([])
      expect(yield* ids({ limit: 1, starting_after: second.id })).toEqual([first.id])
    })
  )

  it.scopedLive("refuse an unknown coupon, a moment that has passed and bounds beyond those of the coupon", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const coupon = yield* call(() =>
        stripe.coupons.create({ percent_off: 5, max_redemptions: 2, redeem_by: now() + 500 })
      )
      const promotion = { type: "coupon", coupon: coupon.id }
      const refused = (params: object) => refusedAs(stripe, "/v1/promotion_codes", params)
      expect(yield* refused({ promotion: { type: "coupon", coupon: "none" } })).toEqual([
        400,
        "resource_missing",
        "promotion[coupon]"
      ])
      expect(yield* refused({})).toEqual([400, "parameter_missing", "promotion"])
      expect(yield* refused({ coupon: coupon.id })).toEqual([400, "parameter_unknown", "coupon"])
      expect(yield* refused({ promotion, expires_at: now() - 1 })).toEqual([400, undefined, "expires_at"])
      expect(yield* refused({ promotion, expires_at: now() + 501 + 60 })).toEqual([400, undefined, "expires_at"])
      expect(yield* refused({ promotion, max_redemptions: 3 })).toEqual([400, undefined, "max_redemptions"])
      expect(yield* refused({ promotion, code: "sp ace" })).toEqual([400, undefined, "code"])
      expect(yield* refused({ promotion, restrictions: { minimum_amount: 1 } })).toEqual([
        400,
        "parameter_unknown",
        "restrictions"
      ])
      expect((yield* call(() => stripe.promotionCodes.list())).data).toEqual([])
    })
  )
})

describe("a code on the hosted page", () => {
  it.scopedLive("lowers what is paid, and is counted once it was", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
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
      expect(
        yield* call(() => stripe.promotionCodes.retrieve(code.id, { expand: ["promotion.coupon"] }))
      ).toMatchObject({
        times_redeemed: 1,
        active: false,
        promotion: { coupon: { times_redeemed: 1, valid: true } }
      })
      const next = yield* someSession(stripe, { allow_promotion_codes: true })
      expect((yield* submit(next.url, { action: "pay", promotion_code: "TEN" })).status).toBe(400)
    })
  )

  it.scopedLive("lowers only the products that it is for, and a fixed amount never below nothing", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
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
  )

  it.scopedLive("is refused where it is unknown, in another currency or not allowed, and nothing is charged", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
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
  )
})
