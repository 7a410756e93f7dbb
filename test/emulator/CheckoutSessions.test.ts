import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { call, connected, raw, said, somePrice, someSession, submit } from "./Harness.ts"

describe("the lines of a session", () => {
  it.scopedLive("are at most 100, or in a subscription 20 that recur and 20 that do not", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const once = (yield* somePrice(stripe)).id
      const monthly = (yield* somePrice(stripe, { recurring: { interval: "month" } })).id
      const lines = (price: string, count: number) => Array.from({ length: count }, () => ({ price, quantity: 1 }))
      yield* someSession(stripe, { mode: "payment", line_items: lines(once, 100) })
      yield* someSession(stripe, { mode: "subscription", line_items: [...lines(monthly, 20), ...lines(once, 20)] })
      const refused = { statusCode: 400, param: "line_items" }
      for (const [mode, line_items] of [
        ["payment", lines(once, 101)],
        ["subscription", lines(monthly, 21)],
        ["subscription", [...lines(monthly, 1), ...lines(once, 21)]]
      ] as const) {
        const create = () =>
          stripe.checkout.sessions.create({ mode, line_items: [...line_items], success_url: "https://shop.example" })
        expect(yield* said(create)).toMatchObject(refused)
      }
    })
  )
})

describe("checkout sessions", () => {
  it.scopedLive("sum what they sell and carry what they were given", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      const coffee = yield* somePrice(stripe, { unit_amount: 150 })
      const tea = yield* somePrice(stripe, { unit_amount: 7 })
      const session = yield* someSession(stripe, {
        line_items: [
          { price: coffee.id, quantity: 3 },
          { price: tea.id, quantity: 1 }
        ],
        allow_promotion_codes: true,
        cancel_url: "https://shop.example/cart",
        client_reference_id: "order 9",
        customer_email: "payer@example.com",
        metadata: { order: "9" }
      })
      expect(session).toMatchObject({
        amount_subtotal: 457,
        amount_total: 457,
        allow_promotion_codes: true,
        cancel_url: "https://shop.example/cart",
        client_reference_id: "order 9",
        currency: "brl",
        customer_email: "payer@example.com",
        expires_at: session.created + 86_400,
        livemode: false,
        metadata: { order: "9" },
        mode: "payment",
        payment_status: "unpaid",
        status: "open",
        url: `${emulator.url}/c/pay/${session.id}`
      })
      expect(session.id).toMatch(/^cs_test_[A-Za-z0-9]{58}$/)
      const items = yield* call(() => stripe.checkout.sessions.listLineItems(session.id, { limit: 1 }))
      expect(items).toMatchObject({
        has_more: true,
        data: [{ description: "Coffee", quantity: 3, amount_total: 450, price: { id: coffee.id } }]
      })
      const rest = yield* call(() =>
        stripe.checkout.sessions.listLineItems(session.id, { starting_after: items.data[0]?.id ?? "" })
      )
      expect(rest).toMatchObject({ has_more: false, data: [{ quantity: 1, amount_total: 7 }] })
    })
  )

  it.scopedLive("refuse what the provider's checkout would refuse", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const { id: price } = yield* somePrice(stripe)
      const { id: dollars } = yield* somePrice(stripe, { currency: "usd" })
      const { id: monthly } = yield* somePrice(stripe, { recurring: { interval: "month" } })
      const { id: yearly } = yield* somePrice(stripe, { recurring: { interval: "year" } })
      const { id: inactive } = yield* somePrice(stripe, { active: false })
      const { id: huge } = yield* somePrice(stripe, { unit_amount: 99_999_999 })
      const { id: free } = yield* call(() =>
        stripe.prices.create({ currency: "brl", product_data: { name: "any" }, custom_unit_amount: { enabled: true } })
      )
      const archived = yield* somePrice(stripe)
      yield* call(() => stripe.products.update(String(archived.product), { active: false }))
      const now = Math.floor(Date.now() / 1_000)

      const refused = (line_items: Array<object>, params: object = {}) =>
        Effect.map(
          said(() =>
            stripe.rawRequest("POST", "/v1/checkout/sessions", {
              mode: "payment",
              success_url: "https://shop.example",
              line_items,
              ...params
            })
          ),
          ({ code, param, statusCode }) => [statusCode, code, param]
        )
      const one = (id: string, quantity = 1) => ({ price: id, quantity })
      expect(yield* refused([])).toEqual([400, "parameter_missing", "line_items"])
      expect(yield* refused([{ price }])).toEqual([400, "parameter_missing", "line_items[0][quantity]"])
      expect(yield* refused([one(price), one("price_none")])).toEqual([400, "resource_missing", "line_items[1][price]"])
      expect(yield* refused([one(inactive)])).toEqual([400, undefined, "line_items[0][price]"])
      expect(yield* refused([one(archived.id)])).toEqual([400, "product_inactive", "line_items[0][price]"])
      expect(yield* refused([one(price), one(dollars)])).toEqual([400, undefined, "line_items[1][price]"])
      expect(yield* refused([one(price)], { currency: "usd" })).toEqual([400, undefined, "line_items[0][price]"])
      expect(yield* refused([one(huge), one(price)])).toEqual([400, "amount_too_large", "line_items"])
      const { id: rupiah } = yield* somePrice(stripe, { currency: "idr", unit_amount: 999_999_999_999 })
      expect(yield* refused([one(rupiah, 2)])).toEqual([400, "amount_too_large", "line_items"])
      const { id: centavos } = yield* somePrice(stripe, { unit_amount: 7 })
      expect(yield* refused([one(centavos, 7)])).toEqual([400, "amount_too_small", "line_items"])
      expect(yield* refused([one(free), one(price)])).toEqual([400, undefined, "line_items[0]"])
      expect(yield* refused([one(monthly)])).toEqual([400, undefined, "mode"])
      expect(yield* refused([one(price)], { mode: "subscription" })).toEqual([400, undefined, "mode"])
      expect(yield* refused([one(price)], { mode: "setup" })).toEqual([400, undefined, "mode"])
      expect(yield* refused([one(monthly), one(yearly)], { mode: "subscription" })).toEqual([
        400,
        undefined,
        "line_items"
      ])
      expect(yield* refused([one(price)], { subscription_data: { metadata: { a: 1 } } })).toEqual([
        400,
        undefined,
        "subscription_data"
      ])
      expect(
        yield* refused([one(monthly)], { mode: "subscription", payment_intent_data: { description: "x" } })
      ).toEqual([400, undefined, "payment_intent_data"])
      expect(yield* refused([one(price)], { success_url: "javascript:alert(1)" })).toEqual([
        400,
        "url_invalid",
        "success_url"
      ])
      expect(yield* refused([one(price)], { expires_at: now + 60 })).toEqual([400, undefined, "expires_at"])
      expect(yield* refused([one(price)], { expires_at: now + 90_000 })).toEqual([400, undefined, "expires_at"])
      expect(yield* refused([one(price)], { customer_email: "nobody" })).toEqual([
        400,
        "email_invalid",
        "customer_email"
      ])
      expect(yield* refused([one(price)], { payment_method_types: ["card"] })).toEqual([
        400,
        "parameter_unknown",
        "payment_method_types"
      ])
      expect(yield* refused([{ ...one(price), adjustable_quantity: { enabled: true } }])).toEqual([
        400,
        "parameter_unknown",
        "line_items[0][adjustable_quantity]"
      ])
      expect((yield* call(() => stripe.checkout.sessions.list())).data).toEqual([])
    })
  )

  it.scopedLive("are created for subscriptions, with nothing due for what recurs during a trial", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const monthly = yield* somePrice(stripe, { recurring: { interval: "month" } })
      const setup = yield* somePrice(stripe, { unit_amount: 90 })
      const line_items = [
        { price: monthly.id, quantity: 1 },
        { price: setup.id, quantity: 1 }
      ]
      const session = yield* someSession(stripe, { mode: "subscription", line_items })
      expect(session).toMatchObject({
        mode: "subscription",
        amount_total: 590,
        subscription: null,
        payment_method_collection: "always",
        customer_creation: null
      })
      const trial = yield* someSession(stripe, {
        mode: "subscription",
        line_items,
        subscription_data: { trial_period_days: 14, metadata: { a: "b" } }
      })
      expect(trial.amount_total).toBe(90)
    })
  )

  it.scopedLive("are expired once, and found by status and payment", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const open = yield* someSession(stripe)
      const session = yield* someSession(stripe)
      const expired = yield* call(() => stripe.checkout.sessions.expire(session.id))
      expect(expired).toMatchObject({ status: "expired", url: null, payment_status: "unpaid" })
      expect(yield* said(() => stripe.checkout.sessions.expire(session.id))).toMatchObject({ statusCode: 400 })
      expect(yield* said(() => stripe.checkout.sessions.expire("cs_test_none"))).toMatchObject({
        statusCode: 404,
        code: "resource_missing"
      })
      const [event] = (yield* call(() => stripe.events.list({ type: "checkout.session.*" }))).data
      expect(event).toMatchObject({
        type: "checkout.session.expired",
        data: { object: { id: session.id, status: "expired" } }
      })
      const ids = (params: Stripe.Checkout.SessionListParams) =>
        Effect.map(
          call(() => stripe.checkout.sessions.list(params)),
          ({ data }) => data.map(({ id }) => id)
        )
      expect(yield* ids({ status: "open" })).toEqual([open.id])
      expect(yield* ids({ status: "expired" })).toEqual([session.id])
      expect(yield* ids({ payment_intent: "pi_none" })).toEqual([])
    })
  )

  it.scopedLive("ask the payer for fields and a phone number, and keep the answers", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const label = (custom: string) => ({ type: "custom" as const, custom })
      const fields = [
        { key: "note", label: label("Note"), type: "text" as const, optional: true },
        { key: "age", label: label("Age"), type: "numeric" as const },
        {
          key: "size",
          label: label("Size <b>"),
          type: "dropdown" as const,
          dropdown: { options: [{ label: "Large", value: "l" }] }
        }
      ]
      const session = yield* someSession(stripe, { custom_fields: fields, phone_number_collection: { enabled: true } })
      expect(session.custom_fields).toMatchObject([{ key: "note", optional: true }, { key: "age" }, { key: "size" }])
      const { origin, pathname } = new URL(session.url ?? "")
      const page = yield* raw(origin, pathname)
      expect(page.text).toContain('name="fields[age]" required')
      expect(page.text).toContain("Size &lt;b&gt;")
      const good = { action: "pay", phone: "+55 11 5555", "fields[age]": "30", "fields[size]": "l" }
      for (const [name, value] of [
        ["phone", ""],
        ["fields[age]", ""],
        ["fields[age]", "old"],
        ["fields[size]", "xl"]
      ] as const) {
        expect((yield* submit(session.url, { ...good, [name]: value })).status, `${name}=${value}`).toBe(400)
      }
      expect((yield* submit(session.url, good)).status).toBe(303)
      expect(yield* call(() => stripe.checkout.sessions.retrieve(session.id))).toMatchObject({
        status: "complete",
        customer_details: { phone: "+55 11 5555" },
        custom_fields: [{ text: { value: null } }, { numeric: { value: "30" } }, { dropdown: { value: "l" } }]
      })
      const price = yield* somePrice(stripe)
      const twice = fields.slice(0, 1)
      for (const [custom_fields, param] of [
        [[...twice, ...twice], "custom_fields[1][key]"],
        [[{ key: "size", label: label("Size"), type: "dropdown" as const }], "custom_fields[0][dropdown]"]
      ] as const) {
        const refused = yield* call(() =>
          stripe.checkout.sessions
            .create({
              mode: "payment",
              line_items: [{ price: price.id, quantity: 1 }],
              success_url: "https://shop.example/thanks",
              custom_fields: [...custom_fields]
            })
            .catch((error: unknown) => error)
        )
        expect(refused).toMatchObject({ statusCode: 400, param })
      }
    })
  )
})
