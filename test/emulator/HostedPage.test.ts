import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type Stripe from "stripe"
import { call, onEmulator, raw, somePrice, someSession, submit } from "./Harness.ts"

const donation = (stripe: Stripe, currency: string, custom_unit_amount: Stripe.PriceCreateParams.CustomUnitAmount) =>
  Effect.gen(function* () {
    const price = yield* call(() =>
      stripe.prices.create({ currency, product_data: { name: "Donation" }, custom_unit_amount })
    )
    return yield* someSession(stripe, { line_items: [{ price: price.id, quantity: 1 }] })
  })

describe("the hosted page", () => {
  onEmulator("takes a payment: intent, charge, session and events in order", function* ({ account, stripe }) {
    const session = yield* someSession(stripe, {
      payment_intent_data: { metadata: { order: "7" } },
      client_reference_id: "order-7"
    })
    expect(session).toMatchObject({
      status: "open",
      payment_status: "unpaid",
      payment_intent: null,
      amount_total: 1000
    })

    const paid = yield* submit(session.url, { action: "pay", email: "payer@example.com" })
    expect(paid.status).toBe(303)
    expect(paid.headers.get("location")).toBe(`https://shop.example/thanks?session=${session.id}`)

    const after = yield* call(() =>
      stripe.checkout.sessions.retrieve(session.id, { expand: ["payment_intent.latest_charge"] })
    )
    expect(after).toMatchObject({
      status: "complete",
      payment_status: "paid",
      url: null,
      customer_details: { email: "payer@example.com" },
      payment_intent: {
        status: "succeeded",
        amount: 1000,
        amount_received: 1000,
        currency: "brl",
        metadata: { order: "7" },
        latest_charge: { status: "succeeded", paid: true, captured: true, amount_captured: 1000 }
      }
    })

    const events = yield* call(() => stripe.events.list({ limit: 4 }))
    expect(events.data.map(({ type }) => type).reverse()).toEqual([
      "payment_intent.created",
      "charge.succeeded",
      "payment_intent.succeeded",
      "checkout.session.completed"
    ])
    expect(events.data[0]).toMatchObject({
      account,
      context: account,
      livemode: false,
      data: { object: { id: session.id } }
    })
  })

  onEmulator("lets a declined card be followed by one that pays, with the same payment intent", function* ({ stripe }) {
    const session = yield* someSession(stripe)
    const declined = yield* submit(session.url, { action: "decline" })
    expect(declined.status).toBe(402)
    expect(declined.text).toContain("Your card was declined")
    const [intent] = (yield* call(() => stripe.paymentIntents.list())).data
    expect(intent).toMatchObject({
      status: "requires_payment_method",
      amount_received: 0,
      last_payment_error: { type: "card_error", code: "card_declined", decline_code: "generic_decline" }
    })
    expect((yield* call(() => stripe.checkout.sessions.retrieve(session.id))).status).toBe("open")

    expect((yield* submit(session.url, { action: "pay" })).status).toBe(303)
    const intents = yield* call(() => stripe.paymentIntents.list())
    expect(intents.data.map(({ id, last_payment_error, status }) => ({ id, last_payment_error, status }))).toEqual([
      { id: intent?.id, last_payment_error: null, status: "succeeded" }
    ])
    const charges = yield* call(() => stripe.charges.list({ payment_intent: intent?.id ?? "" }))
    expect(charges.data.map(({ failure_code, status }) => [status, failure_code])).toEqual([
      ["succeeded", null],
      ["failed", "card_declined"]
    ])
    const events = yield* call(() => stripe.events.list({ limit: 6 }))
    expect(events.data.map(({ type }) => type).reverse()).toEqual([
      "payment_intent.created",
      "charge.failed",
      "payment_intent.payment_failed",
      "charge.succeeded",
      "payment_intent.succeeded",
      "checkout.session.completed"
    ])
  })

  onEmulator("takes one payment however often and however fast Pay is pressed", function* ({ stripe }) {
    const session = yield* someSession(stripe)
    const answers = yield* Effect.all(
      Array.from({ length: 20 }, () => submit(session.url, { action: "pay" })),
      { concurrency: "unbounded" }
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([303]))
    expect((yield* call(() => stripe.paymentIntents.list())).data).toHaveLength(1)
    expect((yield* call(() => stripe.charges.list())).data).toHaveLength(1)
    expect((yield* call(() => stripe.events.list({ type: "checkout.session.completed" }))).data).toHaveLength(1)
  })

  onEmulator("lets an order in reais be completed now and paid later, and no other", function* ({ stripe }) {
    const session = yield* someSession(stripe)
    const page = yield* raw(new URL(session.url ?? "").origin, new URL(session.url ?? "").pathname)
    expect(page.text).toContain('value="boleto">Pay by boleto</button>')
    expect(page.text).toContain('value="pix">Pay by Pix</button>')
    expect((yield* submit(session.url, { action: "decline" })).status).toBe(402)
    expect((yield* submit(session.url, { action: "pix", email: "payer@example.com" })).status).toBe(303)
    expect(
      yield* call(() => stripe.checkout.sessions.retrieve(session.id, { expand: ["payment_intent"] }))
    ).toMatchObject({
      status: "complete",
      payment_status: "unpaid",
      payment_method_types: ["card", "pix"],
      customer_details: { email: "payer@example.com" },
      payment_intent: { status: "requires_action", next_action: { type: "pix_display_qr_code" } }
    })
    const dollars = yield* somePrice(stripe, { currency: "usd" })
    const other = yield* someSession(stripe, { line_items: [{ price: dollars.id, quantity: 1 }] })
    const refused = yield* submit(other.url, { action: "boleto" })
    expect([refused.status, refused.text.includes('value="boleto"')]).toEqual([400, false])
    expect((yield* call(() => stripe.checkout.sessions.retrieve(other.id))).status).toBe("open")
  })

  onEmulator("completes a free order without a payment", function* ({ stripe }) {
    const price = yield* somePrice(stripe, { unit_amount: 0 })
    const session = yield* someSession(stripe, { line_items: [{ price: price.id, quantity: 1 }] })
    expect((yield* submit(session.url, { action: "decline" })).status).toBe(400)
    expect((yield* submit(session.url, { action: "pay" })).status).toBe(303)
    expect(yield* call(() => stripe.checkout.sessions.retrieve(session.id))).toMatchObject({
      status: "complete",
      payment_status: "no_payment_required",
      payment_intent: null,
      amount_total: 0
    })
    expect((yield* call(() => stripe.paymentIntents.list())).data).toEqual([])
  })

  onEmulator("charges the amount that the payer chooses, within the price's bounds", function* ({ stripe }) {
    const session = yield* donation(stripe, "usd", { enabled: true, minimum: 100, maximum: 5000, preset: 700 })
    expect(session.amount_total).toBe(700)
    for (const amount of ["99", "5001", "abc", "-1", "1.5"]) {
      expect((yield* submit(session.url, { action: "pay", amount })).status).toBe(400)
    }
    expect((yield* submit(session.url, { action: "pay", amount: "1234" })).status).toBe(303)
    const after = yield* call(() =>
      stripe.checkout.sessions.retrieve(session.id, { expand: ["line_items", "payment_intent"] })
    )
    expect(after).toMatchObject({
      amount_total: 1234,
      payment_intent: { amount_received: 1234 },
      line_items: { data: [{ amount_total: 1234 }] }
    })
  })

  onEmulator("charges no less than the provider's minimum if the price has no bounds", function* ({ stripe }) {
    const session = yield* donation(stripe, "usd", { enabled: true, preset: 700 })
    expect((yield* submit(session.url, { action: "pay", amount: "49" })).status).toBe(400)
    expect((yield* submit(session.url, { action: "pay", amount: "50" })).status).toBe(303)
  })

  onEmulator("takes and shows amounts in the currency's own digits", function* ({ stripe }) {
    const session = yield* donation(stripe, "kwd", { enabled: true, minimum: 500, maximum: 50_000, preset: 1500 })
    const { text: shown } = yield* raw("", session.url ?? "")
    expect(shown).toContain('value="1.500"')
    expect(shown).toContain("KWD\u00a00.500 to KWD\u00a050.000")
    for (const amount_text of ["0.4", "1.2345", "abc", "-1", ""]) {
      expect((yield* submit(session.url, { action: "pay", amount_text })).status, amount_text).toBe(400)
    }
    expect((yield* submit(session.url, { action: "pay", amount_text: "2,5" })).status).toBe(303)
    const after = yield* call(() => stripe.checkout.sessions.retrieve(session.id))
    expect(after.amount_total).toBe(2500)
  })

  onEmulator("names the shop, a subscription's interval and its free days", function* ({ account, emulator, stripe }) {
    yield* emulator.trigger({ type: "account.updated", account, business_profile: { name: "Bean & Leaf" } })
    const price = yield* somePrice(stripe, { recurring: { interval: "month", interval_count: 3 } })
    const session = yield* someSession(stripe, {
      mode: "subscription",
      line_items: [{ price: price.id, quantity: 2 }],
      subscription_data: { trial_period_days: 7 }
    })
    const { text: shown } = yield* raw("", session.url ?? "")
    expect(shown).toContain("<h1>Pay Bean &amp; Leaf</h1>")
    expect(shown).toContain("R$5.00 each, every 3 months")
    expect(shown).toContain("The first 7 days are free. It renews every 3 months until you cancel.")
  })

  onEmulator("refuses an amount where the order fixes it, and a form it does not understand", function* ({ stripe }) {
    const session = yield* someSession(stripe)
    for (const fields of [
      { action: "pay", amount: "1" },
      { action: "steal" },
      {},
      { action: "pay", more: "1" },
      { action: "pay", email: "nobody" }
    ]) {
      expect((yield* submit(session.url, fields)).status).toBe(400)
    }
    expect((yield* call(() => stripe.paymentIntents.list())).data).toEqual([])
  })

  onEmulator("shows what is sold and the total, and escapes every text", function* ({ emulator, stripe }) {
    const price = yield* somePrice(stripe, {
      product_data: { name: `<script>alert("x")</script> & 'sons'` },
      unit_amount: 1999,
      currency: "usd"
    })
    const session = yield* someSession(stripe, {
      line_items: [{ price: price.id, quantity: 3 }],
      cancel_url: 'https://shop.example/cart?a="b"&c'
    })
    const page = yield* raw("", session.url ?? "")
    expect(page.status).toBe(200)
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8")
    expect(page.text).toContain("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;sons&#39;")
    expect(page.text).not.toContain("<script")
    expect(page.text).toContain('href="https://shop.example/cart?a=&quot;b&quot;&amp;c"')
    expect(page.text).toContain("$59.97")
    expect(page.text).toContain('<button name="action" value="pay">Pay $59.97</button>')
    // Only a test chooses that its card is declined
    expect(page.text.slice(page.text.indexOf("<fieldset>"), page.text.indexOf("</fieldset>"))).toContain(
      'value="decline"'
    )
    expect(page.text.match(/value="decline"/g)).toHaveLength(1)
    expect(session.url).toBe(`${emulator.url}/c/pay/${session.id}`)
  })

  onEmulator("says of a finished session that it is finished", function* ({ stripe }) {
    const paid = yield* someSession(stripe)
    yield* submit(paid.url, { action: "pay" })
    const complete = yield* raw("", paid.url ?? "")
    expect(complete.text).toContain("complete")
    expect(complete.text).not.toContain("<button")
    yield* submit(paid.url, { action: "decline" })
    expect((yield* call(() => stripe.charges.list())).data).toHaveLength(1)

    const expired = yield* someSession(stripe)
    yield* call(() => stripe.checkout.sessions.expire(expired.id))
    expect((yield* raw("", expired.url ?? "")).text).toContain("expired")
    expect((yield* submit(expired.url, { action: "pay" })).status).toBe(410)
    expect((yield* call(() => stripe.charges.list())).data).toHaveLength(1)
  })

  onEmulator("answers 404 for an unknown session and 405 for an unknown method", function* ({ emulator, stripe }) {
    expect((yield* raw(emulator.url, "/c/pay/cs_test_nothing")).status).toBe(404)
    const refused = yield* raw("", (yield* someSession(stripe)).url ?? "", { method: "PUT" })
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, POST"])
  })
})
