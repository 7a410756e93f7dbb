import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { call, onEmulator, openLink, raw, somePrice, submit } from "./Harness.ts"

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

describe("an opened payment link", () => {
  onEmulator("makes a session of its own for each payer, with what the link carries", function* ({ emulator, stripe }) {
    const link = yield* someLink(stripe, {
      metadata: { campaign: "x" },
      payment_intent_data: { metadata: { order: "7" } },
      after_completion: { type: "hosted_confirmation", hosted_confirmation: { custom_message: "See <you>" } }
    })
    const first = yield* openLink(link.url)
    expect(first).not.toBe(yield* openLink(link.url))
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
    const refused = yield* raw("", link.url, { method: "POST" })
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET"])
  })

  onEmulator("lets the payer choose a quantity within its bounds, and goes on to the shop", function* ({ stripe }) {
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

  onEmulator("lets the payer remove items whose quantity has no minimum, but not the last one", function* ({ stripe }) {
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

  onEmulator("takes no payment that is too small to be charged, whatever the payer chooses", function* ({ stripe }) {
    const { id: price } = yield* somePrice(stripe, { currency: "brl", unit_amount: 30 })
    const adjustable_quantity = { enabled: true, minimum: 1 }
    const link = yield* someLink(stripe, {
      allow_promotion_codes: true,
      line_items: [{ price, quantity: 2, adjustable_quantity }]
    })
    const coupon = yield* call(() => stripe.coupons.create({ percent_off: 50 }))
    yield* call(() => stripe.promotionCodes.create({ code: "HALF", promotion: { type: "coupon", coupon: coupon.id } }))
    const page = yield* openLink(link.url)
    for (const choice of [{ "quantities[0]": "1" }, { promotion_code: "HALF" }]) {
      const { status, text } = yield* submit(page, { action: "pay", ...choice })
      expect([status, text.includes("at least 50")]).toEqual([400, true])
    }
    expect((yield* submit(page, { action: "pay", "quantities[0]": "2" })).status).toBe(200)
  })

  onEmulator("is closed by its sales limit and by its owner, also for sessions that are open", function* ({ stripe }) {
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
})
