import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { call, onEmulator, somePrice, someSession, submit } from "./Harness.ts"

const subscriptionSession = (stripe: Stripe, params: Partial<Stripe.Checkout.SessionCreateParams> = {}) =>
  Effect.gen(function* () {
    const monthly = yield* somePrice(stripe, { recurring: { interval: "month" } })
    return yield* someSession(stripe, {
      mode: "subscription",
      line_items: [{ price: monthly.id, quantity: 2 }],
      ...params
    })
  })

const subscribed = (stripe: Stripe, params: Partial<Stripe.Checkout.SessionCreateParams> = {}) =>
  Effect.gen(function* () {
    const session = yield* subscriptionSession(stripe, params)
    yield* submit(session.url, { action: "pay", email: "payer@example.com" })
    const [subscription] = (yield* call(() => stripe.subscriptions.list({ status: "all" }))).data
    if (subscription === undefined) throw new Error("No subscription was made")
    return { session, subscription }
  })

const newTypes = (stripe: Stripe, limit: number) =>
  Effect.map(
    call(() => stripe.events.list({ limit })),
    ({ data }) => data.map(({ type }) => type).reverse()
  )

const firstInvoicePaid = [
  "customer.subscription.created",
  "invoice.created",
  "invoice.finalized",
  "invoice.paid",
  "invoice.payment_succeeded",
  "checkout.session.completed"
]

describe("paying a session in subscription mode", () => {
  onEmulator("makes a customer, a payment, a subscription and an invoice, in this order", function* ({ stripe }) {
    const setup = yield* somePrice(stripe, { unit_amount: 90 })
    const monthly = yield* somePrice(stripe, { recurring: { interval: "month" } })
    const session = yield* someSession(stripe, {
      mode: "subscription",
      line_items: [
        { price: monthly.id, quantity: 2 },
        { price: setup.id, quantity: 1 }
      ],
      subscription_data: { metadata: { plan: "gold" } }
    })
    expect((yield* submit(session.url, { action: "pay", email: "payer@example.com" })).status).toBe(303)
    expect(yield* newTypes(stripe, 10)).toEqual([
      "customer.created",
      "payment_intent.created",
      "charge.succeeded",
      "payment_intent.succeeded",
      ...firstInvoicePaid
    ])
    const after = yield* call(() =>
      stripe.checkout.sessions.retrieve(session.id, { expand: ["subscription.latest_invoice", "customer", "invoice"] })
    )
    expect(after).toMatchObject({
      mode: "subscription",
      status: "complete",
      payment_status: "paid",
      payment_intent: null,
      amount_total: 1090,
      customer: { object: "customer", email: "payer@example.com" },
      subscription: {
        status: "active",
        metadata: { plan: "gold" },
        items: { data: [{ quantity: 2, price: { id: monthly.id }, plan: { object: "plan", interval: "month" } }] },
        latest_invoice: { status: "paid" }
      },
      invoice: {
        amount_due: 1090,
        amount_paid: 1090,
        billing_reason: "subscription_create",
        status: "paid",
        parent: { type: "subscription_details", subscription_details: { metadata: { plan: "gold" } } },
        lines: {
          data: [
            { amount: 1000, pricing: { price_details: { price: monthly.id, product: monthly.product } } },
            { amount: 90, pricing: { price_details: { price: setup.id } } }
          ]
        }
      }
    })
    const [intent] = (yield* call(() => stripe.paymentIntents.list())).data
    expect(intent).toMatchObject({ amount_received: 1090, metadata: {}, setup_future_usage: "off_session" })
    const invoices = yield* call(() => stripe.invoices.list({ expand: ["data.payments"] }))
    expect(invoices.data[0]?.payments?.data[0]).toMatchObject({
      amount_paid: 1090,
      payment: { type: "payment_intent", payment_intent: intent?.id }
    })
  })

  onEmulator("takes no payment in a trial, which ends when it was said to", function* ({ stripe }) {
    const { session, subscription } = yield* subscribed(stripe, { subscription_data: { trial_period_days: 14 } })
    expect(subscription).toMatchObject({
      status: "trialing",
      trial_start: subscription.created,
      trial_end: subscription.created + 14 * 86_400,
      items: { data: [{ current_period_end: subscription.created + 14 * 86_400 }] }
    })
    expect(yield* call(() => stripe.checkout.sessions.retrieve(session.id))).toMatchObject({
      status: "complete",
      payment_status: "no_payment_required",
      amount_total: 0
    })
    expect((yield* call(() => stripe.paymentIntents.list())).data).toEqual([])
    expect((yield* call(() => stripe.invoices.list())).data).toMatchObject([{ status: "paid", amount_paid: 0 }])
    expect(yield* newTypes(stripe, 7)).toEqual(["customer.created", ...firstInvoicePaid])
  })

  onEmulator("can follow a declined card, with the same payment intent and one subscription", function* ({ stripe }) {
    const session = yield* subscriptionSession(stripe)
    expect((yield* submit(session.url, { action: "decline" })).status).toBe(402)
    expect((yield* submit(session.url, { action: "decline" })).status).toBe(402)
    expect((yield* call(() => stripe.subscriptions.list({ status: "all" }))).data).toEqual([])
    expect((yield* call(() => stripe.checkout.sessions.retrieve(session.id))).payment_intent).toBeNull()
    const answers = yield* Effect.all(
      Array.from({ length: 5 }, () => submit(session.url, { action: "pay" })),
      { concurrency: "unbounded" }
    )
    expect(answers.map(({ status }) => status)).toEqual([303, 303, 303, 303, 303])
    expect((yield* call(() => stripe.subscriptions.list())).data).toHaveLength(1)
    expect((yield* call(() => stripe.paymentIntents.list())).data).toMatchObject([{ status: "succeeded" }])
    expect((yield* call(() => stripe.charges.list())).data.map(({ status }) => status)).toEqual([
      "succeeded",
      "failed",
      "failed"
    ])
  })

  onEmulator("discounts its invoices for as long as the coupon says", function* ({ account, emulator, stripe }) {
    for (const [code, duration, kept, expected] of [
      ["ONCE", { duration: "once" }, 0, [1000, 1000, 900]],
      ["TWO", { duration: "repeating", duration_in_months: 2 }, 1, [1000, 900, 900]],
      ["EVER", { duration: "forever" }, 1, [900, 900, 900]]
    ] as const) {
      const coupon = yield* call(() => stripe.coupons.create({ percent_off: 10, ...duration }))
      yield* call(() => stripe.promotionCodes.create({ promotion: { type: "coupon", coupon: coupon.id }, code }))
      const session = yield* subscriptionSession(stripe, { allow_promotion_codes: true })
      yield* submit(session.url, { action: "pay", promotion_code: code })
      const [subscription] = (yield* call(() => stripe.subscriptions.list({ expand: ["data.discounts"] }))).data
      expect([code, subscription?.discounts.length]).toEqual([code, kept])
      const id = subscription?.id ?? ""
      for (const _ of [1, 2]) yield* emulator.renewSubscription({ account, id, outcome: "paid" })
      const { data } = yield* call(() => stripe.invoices.list({ subscription: id }))
      expect([code, data.map(({ amount_paid }) => amount_paid)]).toEqual([code, expected])
      expect(data.at(-1)).toMatchObject({ subtotal: 1000, total_discount_amounts: [{ amount: 100 }] })
    }
  })
})

describe("subscriptions", () => {
  onEmulator("are renewed: paid, or past due if the card is declined", function* ({ account, emulator, stripe }) {
    const { subscription } = yield* subscribed(stripe)
    const end = subscription.items.data[0]?.current_period_end
    yield* emulator.renewSubscription({ account, id: subscription.id, outcome: "paid" })
    const renewed = yield* call(() => stripe.subscriptions.retrieve(subscription.id, { expand: ["latest_invoice"] }))
    expect(renewed).toMatchObject({
      status: "active",
      items: { data: [{ current_period_start: end }] },
      latest_invoice: { billing_reason: "subscription_cycle", amount_paid: 1000 }
    })
    yield* emulator.renewSubscription({ account, id: subscription.id, outcome: "failed" })
    expect(yield* newTypes(stripe, 7)).toEqual([
      "payment_intent.created",
      "charge.failed",
      "payment_intent.payment_failed",
      "invoice.created",
      "invoice.finalized",
      "invoice.payment_failed",
      "customer.subscription.updated"
    ])
    const [invoice] = (yield* call(() => stripe.invoices.list({ status: "open" }))).data
    expect(invoice).toMatchObject({ amount_due: 1000, amount_paid: 0, attempt_count: 1 })
    expect((yield* call(() => stripe.subscriptions.retrieve(subscription.id))).status).toBe("past_due")
    expect((yield* call(() => stripe.invoices.listLineItems(invoice?.id ?? ""))).data).toHaveLength(1)
  })

  onEmulator("have periods as long as their prices say", function* ({ stripe }) {
    for (const [interval, interval_count, days] of [
      ["day", 10, [10]],
      ["week", 2, [14]],
      ["year", 1, [365, 366]]
    ] as const) {
      const { id: price } = yield* somePrice(stripe, { recurring: { interval, interval_count } })
      const { subscription } = yield* subscribed(stripe, { line_items: [{ price, quantity: 1 }] })
      const [item] = subscription.items.data
      expect(days).toContain(((item?.current_period_end ?? 0) - (item?.current_period_start ?? 0)) / 86_400)
    }
  })

  onEmulator("are renewed on their first day, even after a shorter month", function* ({ account, emulator, stripe }) {
    // Its first paid period begins on January 31, at the end of the trial
    const day = 24 * 60 * 60 * 1_000
    const year = new Date().getUTCFullYear() + 1
    const trial_period_days = Math.round((Date.UTC(year, 0, 31) - new Date().setUTCHours(0, 0, 0, 0)) / day)
    const { subscription } = yield* subscribed(stripe, { subscription_data: { trial_period_days } })
    const ends: Array<string> = []
    for (let period = 0; period < 4; period += 1) {
      yield* emulator.renewSubscription({ account, id: subscription.id, outcome: "paid" })
      const { items } = yield* call(() => stripe.subscriptions.retrieve(subscription.id))
      ends.push(new Date(1_000 * (items.data[0]?.current_period_end ?? 0)).toISOString().slice(5, 10))
    }
    const february = new Date(Date.UTC(year, 2, 0)).getUTCDate()
    expect(ends).toEqual([`02-${february}`, "03-31", "04-30", "05-31"])
  })
})
