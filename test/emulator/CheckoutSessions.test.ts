import { describe, expect } from "@effect/vitest"
import { Stripe } from "stripe"
import { call, onEmulator, raw, refusal, somePrice, someSession, submit } from "./Harness.ts"

describe("checkout sessions", () => {
  onEmulator("cost what their prices say of the quantity", function* ({ stripe }) {
    const tiered = (tiers_mode: "graduated" | "volume") => ({
      billing_scheme: "tiered" as const,
      tiers_mode,
      tiers: [
        { up_to: 5, unit_amount: 100, flat_amount: 7 },
        { up_to: 10, unit_amount: 50 },
        { up_to: "inf" as const, unit_amount_decimal: Stripe.Decimal.from("10.5"), flat_amount: 1_000 }
      ]
    })
    const packed = (round: "down" | "up") => ({ unit_amount: 100, transform_quantity: { divide_by: 10, round } })
    for (const [terms, quantity, expected] of [
      [{ unit_amount_decimal: Stripe.Decimal.from("100.499999999999") }, 1, 100],
      [{ unit_amount_decimal: Stripe.Decimal.from("100.5") }, 3, 302],
      [packed("up"), 11, 200],
      [packed("down"), 19, 100],
      [tiered("graduated"), 5, 507],
      [tiered("graduated"), 6, 557],
      [tiered("graduated"), 12, 1_778],
      [tiered("volume"), 5, 507],
      [tiered("volume"), 10, 500],
      [tiered("volume"), 11, 1_116]
    ] as const) {
      const product_data = { name: "Coffee" }
      const { id: price } = yield* call(() => stripe.prices.create({ currency: "brl", product_data, ...terms }))
      const session = yield* someSession(stripe, { line_items: [{ price, quantity }] })
      expect([terms, quantity, session.amount_total]).toEqual([terms, quantity, expected])
    }
  })

  onEmulator("ask the payer for fields and a phone number, and keep the answers", function* ({ stripe }) {
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
      const refused = yield* refusal(() =>
        stripe.checkout.sessions.create({
          mode: "payment",
          line_items: [{ price: price.id, quantity: 1 }],
          success_url: "https://shop.example/thanks",
          custom_fields: [...custom_fields]
        })
      )
      expect(refused).toMatchObject({ statusCode: 400, param })
    }
  })
})
