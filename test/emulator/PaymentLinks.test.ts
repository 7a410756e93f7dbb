import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { call, connected, openLink, raw, said, somePrice, submit } from "./Harness.ts"

/** A link that sells one such price. */
const someLink = (stripe: Stripe, params: Partial<Stripe.PaymentLinkCreateParams> = {}) =>
  Effect.gen(function* () {
    const line_items = params.line_items ?? [{ price: (yield* somePrice(stripe)).id, quantity: 1 }]
    return yield* call(() => stripe.paymentLinks.create({ ...params, line_items }))
  })

const sessionsOf = (stripe: Stripe, payment_link: string) =>
  Effect.map(
    call(() => stripe.checkout.sessions.list({ payment_link })),
    ({ data }) => data
  )

describe("payment links", () => {
  it.scopedLive("are made, read with their items, changed and listed, and told of", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      const coffee = yield* somePrice(stripe, { unit_amount: 150 })
      const link = yield* call(() =>
        stripe.paymentLinks.create({
          line_items: [
            { price: coffee.id, quantity: 2, adjustable_quantity: { enabled: true, minimum: 1, maximum: 9 } }
          ],
          allow_promotion_codes: true,
          restrictions: { completed_sessions: { limit: 3 } },
          inactive_message: "Sold out",
          after_completion: { type: "hosted_confirmation", hosted_confirmation: { custom_message: "See you" } },
          metadata: { a: "1" },
          expand: ["line_items"]
        })
      )
      expect(link).toMatchObject({
        object: "payment_link",
        active: true,
        allow_promotion_codes: true,
        currency: "brl",
        inactive_message: "Sold out",
        after_completion: { type: "hosted_confirmation", hosted_confirmation: { custom_message: "See you" } },
        metadata: { a: "1" },
        restrictions: { completed_sessions: { count: 0, limit: 3 } },
        url: `${emulator.url}/b/${link.id}`,
        line_items: {
          data: [
            {
              quantity: 2,
              amount_total: 300,
              description: "Coffee",
              adjustable_quantity: { enabled: true, minimum: 1, maximum: 9 }
            }
          ]
        }
      })
      expect(link.id).toMatch(/^plink_[A-Za-z0-9]{24}$/)
      expect(yield* call(() => stripe.paymentLinks.retrieve(link.id))).not.toHaveProperty("line_items")
      expect((yield* call(() => stripe.paymentLinks.listLineItems(link.id))).data).toMatchObject([{ quantity: 2 }])
      expect(
        yield* call(() =>
          stripe.paymentLinks.update(link.id, { active: false, inactive_message: "", metadata: { b: "2" } })
        )
      ).toMatchObject({
        active: false,
        inactive_message: null,
        metadata: { a: "1", b: "2" },
        allow_promotion_codes: true
      })
      const other = yield* someLink(stripe)
      const ids = (params: Stripe.PaymentLinkListParams) =>
        Effect.map(
          call(() => stripe.paymentLinks.list(params)),
          ({ data }) => data.map(({ id }) => id)
        )
      expect(yield* ids({})).toEqual([other.id, link.id])
      expect(yield* ids({ active: true })).toEqual([other.id])
      expect(yield* ids({ active: false })).toEqual([link.id])
      expect(
        (yield* call(() => stripe.paymentLinks.list({ expand: ["data.line_items"] }))).data[0]?.line_items
      ).toMatchObject({ object: "list", data: [{ quantity: 1 }] })
      const types = (yield* call(() => stripe.events.list({ type: "payment_link.*" }))).data.map(({ type }) => type)
      expect(types.reverse()).toEqual(["payment_link.created", "payment_link.updated", "payment_link.created"])
    })
  )

  it.scopedLive("merge their own metadata, and replace what their payments or subscriptions get", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const link = yield* someLink(stripe, {
        metadata: { a: "1", b: "2" },
        payment_intent_data: { description: "Coffee", metadata: { a: "1", b: "2" } }
      })
      const changed = yield* call(() =>
        stripe.paymentLinks.update(link.id, {
          metadata: { a: "", c: "3" },
          payment_intent_data: { metadata: { c: "3" } }
        })
      )
      expect(changed.metadata).toEqual({ b: "2", c: "3" })
      expect(changed.payment_intent_data).toMatchObject({ description: "Coffee" })
      expect(changed.payment_intent_data?.metadata).toEqual({ c: "3" })
      const emptied = yield* call(() => stripe.paymentLinks.update(link.id, { payment_intent_data: { metadata: "" } }))
      expect(emptied.payment_intent_data?.metadata).toEqual({})
      expect(emptied.metadata).toEqual({ b: "2", c: "3" })

      const monthly = yield* somePrice(stripe, { recurring: { interval: "month" } })
      const recurring = yield* someLink(stripe, {
        line_items: [{ price: monthly.id, quantity: 1 }],
        subscription_data: { trial_period_days: 7, metadata: { a: "1" } }
      })
      expect(
        (yield* call(() => stripe.paymentLinks.update(recurring.id, { subscription_data: { metadata: { b: "2" } } })))
          .subscription_data
      ).toMatchObject({ metadata: { b: "2" }, trial_period_days: 7 })
      for (const [id, param] of [
        [link.id, "subscription_data"],
        [recurring.id, "payment_intent_data"]
      ] as const) {
        const refused = yield* said(() => stripe.paymentLinks.update(id, { [param]: { metadata: { b: "2" } } }))
        expect([refused.statusCode, refused.param]).toEqual([400, param])
      }
    })
  )

  it.scopedLive("refuse what cannot be sold by one, by the parameter's name", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const { id: price } = yield* somePrice(stripe)
      const { id: monthly } = yield* somePrice(stripe, { recurring: { interval: "month" } })
      const { id: inactive } = yield* somePrice(stripe, { active: false })
      const refused = (line_items: Array<object>, params: object = {}) =>
        Effect.map(
          said(() => stripe.rawRequest("POST", "/v1/payment_links", { line_items, ...params })),
          ({ code, param, statusCode }) => [statusCode, code, param]
        )
      const one = { price, quantity: 1 }
      expect(yield* refused([])).toEqual([400, "parameter_missing", "line_items"])
      expect(yield* refused([{ price }])).toEqual([400, "parameter_missing", "line_items[0][quantity]"])
      expect(yield* refused([{ price: "price_none", quantity: 1 }])).toEqual([
        400,
        "resource_missing",
        "line_items[0][price]"
      ])
      expect(yield* refused([{ price: inactive, quantity: 1 }])).toEqual([400, undefined, "line_items[0][price]"])
      expect(yield* refused([{ ...one, adjustable_quantity: { enabled: true, minimum: 5, maximum: 2 } }])).toEqual([
        400,
        undefined,
        "line_items[0][adjustable_quantity]"
      ])
      expect(yield* refused([{ ...one, adjustable_quantity: { enabled: true, minimum: 2 } }])).toEqual([
        400,
        undefined,
        "line_items[0][adjustable_quantity]"
      ])
      expect(yield* refused([one], { restrictions: { completed_sessions: { limit: 0 } } })).toEqual([
        400,
        "parameter_invalid_integer",
        "restrictions[completed_sessions][limit]"
      ])
      expect(yield* refused([one], { subscription_data: { trial_period_days: 3 } })).toEqual([
        400,
        undefined,
        "subscription_data"
      ])
      expect(yield* refused([{ price: monthly, quantity: 1 }], { payment_intent_data: { description: "x" } })).toEqual([
        400,
        undefined,
        "payment_intent_data"
      ])
      expect(yield* refused([one], { after_completion: { type: "redirect" } })).toEqual([
        400,
        "parameter_missing",
        "after_completion[redirect]"
      ])
      expect(
        yield* refused([one], {
          after_completion: { type: "hosted_confirmation", redirect: { url: "https://shop.example" } }
        })
      ).toEqual([400, undefined, "after_completion[redirect]"])
      expect(yield* refused([one], { inactive_message: "x".repeat(501) })).toEqual([400, undefined, "inactive_message"])
      expect(yield* refused([one], { transfer_data: { destination: "x" } })).toEqual([
        400,
        "parameter_unknown",
        "transfer_data"
      ])
      expect(yield* said(() => stripe.paymentLinks.update("plink_none", { active: false }))).toMatchObject({
        statusCode: 404,
        code: "resource_missing"
      })
      expect((yield* call(() => stripe.paymentLinks.list())).data).toEqual([])
    })
  )
})

describe("an opened payment link", () => {
  it.scopedLive("makes a session of its own for each payer, with what the link carries", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      const link = yield* someLink(stripe, {
        metadata: { campaign: "x" },
        payment_intent_data: { metadata: { order: "7" } },
        after_completion: { type: "hosted_confirmation", hosted_confirmation: { custom_message: "See <you>" } }
      })
      const first = yield* openLink(link.url)
      const second = yield* openLink(link.url)
      expect(first).not.toBe(second)
      const paid = yield* submit(first, { action: "pay", email: "a@b.example" })
      expect(paid.status).toBe(200)
      expect(paid.text).toContain("See &lt;you&gt;")
      const sessions = yield* sessionsOf(stripe, link.id)
      expect(sessions.map(({ status }) => status)).toEqual(["open", "complete"])
      expect(sessions[1]).toMatchObject({
        payment_link: link.id,
        metadata: { campaign: "x" },
        mode: "payment",
        payment_status: "paid",
        success_url: null
      })
      expect((yield* call(() => stripe.paymentIntents.list())).data).toMatchObject([{ metadata: { order: "7" } }])
      expect((yield* raw(emulator.url, "/b/plink_none")).status).toBe(404)
      expect((yield* raw("", link.url, { method: "POST" })).status).toBe(405)
    })
  )

  it.scopedLive("lets the payer choose a quantity within its bounds, and goes on to the shop", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const coffee = yield* somePrice(stripe, { unit_amount: 100 })
      const tea = yield* somePrice(stripe, { unit_amount: 7 })
      const link = yield* someLink(stripe, {
        line_items: [
          { price: coffee.id, quantity: 2, adjustable_quantity: { enabled: true, maximum: 5 } },
          { price: tea.id, quantity: 1 }
        ],
        after_completion: { type: "redirect", redirect: { url: "https://shop.example/done?s={CHECKOUT_SESSION_ID}" } }
      })
      const page = yield* openLink(link.url)
      for (const quantities of [
        { "quantities[0]": "6" },
        { "quantities[1]": "2" },
        { "quantities[2]": "1" },
        { "quantities[x]": "1" }
      ]) {
        expect([quantities, (yield* submit(page, { action: "pay", ...quantities })).status]).toEqual([quantities, 400])
      }
      const priced = yield* submit(page, { action: "apply", "quantities[0]": "4" })
      expect(priced.text).toContain("4.07")
      const paid = yield* submit(page, { action: "pay", "quantities[0]": "5", "quantities[1]": "1" })
      const [session] = yield* sessionsOf(stripe, link.id)
      expect([paid.status, paid.headers.get("location")]).toEqual([303, `https://shop.example/done?s=${session?.id}`])
      expect(session?.amount_total).toBe(507)
      expect((yield* call(() => stripe.paymentLinks.listLineItems(link.id))).data[0]?.quantity).toBe(2)
    })
  )

  it.scopedLive("lets the payer remove items whose quantity has no minimum, but not the last one", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const adjustable_quantity = { enabled: true }
      const prices = [yield* somePrice(stripe, { unit_amount: 100 }), yield* somePrice(stripe, { unit_amount: 700 })]
      const link = yield* someLink(stripe, {
        line_items: prices.map(({ id }) => ({ price: id, quantity: 1, adjustable_quantity }))
      })
      const page = yield* openLink(link.url)
      const nothing = { "quantities[0]": "0", "quantities[1]": "0" }
      expect((yield* submit(page, { action: "pay", ...nothing })).status).toBe(400)
      expect((yield* submit(page, { action: "pay", "quantities[0]": "0" })).status).toBe(200)
      const [session] = yield* sessionsOf(stripe, link.id)
      expect(session).toMatchObject({ amount_subtotal: 700, amount_total: 700, status: "complete" })
      const { data } = yield* call(() => stripe.checkout.sessions.listLineItems(session?.id ?? ""))
      expect(data.map(({ price, quantity }) => [price?.id, quantity])).toEqual([[prices[1]?.id, 1]])
    })
  )

  it.scopedLive("takes no payment that is too small to be charged, whatever the payer chooses", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const { id: price } = yield* somePrice(stripe, { currency: "brl", unit_amount: 30 })
      const adjustable_quantity = { enabled: true, minimum: 1 }
      const link = yield* someLink(stripe, {
        allow_promotion_codes: true,
        line_items: [{ price, quantity: 2, adjustable_quantity }]
      })
      const coupon = yield* call(() => stripe.coupons.create({ percent_off: 50 }))
      yield* call(() =>
        stripe.promotionCodes.create({ code: "HALF", promotion: { type: "coupon", coupon: coupon.id } })
      )
      const page = yield* openLink(link.url)
      for (const choice of [{ "quantities[0]": "1" }, { promotion_code: "HALF" }]) {
        const { status, text } = yield* submit(page, { action: "pay", ...choice })
        expect([status, text.includes("at least 50")]).toEqual([400, true])
      }
      expect((yield* submit(page, { action: "pay", "quantities[0]": "2" })).status).toBe(200)
    })
  )

  it.scopedLive("is closed by its sales limit and by its owner, also for sessions that are open", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const link = yield* someLink(stripe, {
        restrictions: { completed_sessions: { limit: 2 } },
        inactive_message: "Sold <out>"
      })
      const pages = yield* Effect.all(Array.from({ length: 8 }, () => openLink(link.url)))
      const answers = yield* Effect.all(
        pages.map((page) => submit(page, { action: "pay" })),
        { concurrency: "unbounded" }
      )
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(2)
      const refused = answers.filter(({ status }) => status === 410)
      expect(refused).toHaveLength(6)
      expect(refused[0]?.text).toContain("Sold &lt;out&gt;")
      expect(yield* call(() => stripe.paymentLinks.retrieve(link.id))).toMatchObject({
        active: false,
        restrictions: { completed_sessions: { count: 2, limit: 2 } }
      })
      expect((yield* raw("", link.url)).status).toBe(410)
      expect((yield* call(() => stripe.events.list({ type: "payment_link.updated" }))).data).toHaveLength(1)

      const other = yield* someLink(stripe)
      const page = yield* openLink(other.url)
      yield* call(() => stripe.paymentLinks.update(other.id, { active: false }))
      expect((yield* submit(page, { action: "pay" })).status).toBe(410)
      expect((yield* raw("", other.url)).text).toContain("no longer active")
      yield* call(() => stripe.paymentLinks.update(other.id, { active: true }))
      expect((yield* submit(page, { action: "pay" })).status).toBe(200)
      expect((yield* call(() => stripe.paymentIntents.list())).data).toHaveLength(3)
    })
  )
})
