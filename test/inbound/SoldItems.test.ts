import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { checkoutMarker } from "../../src/payments/checkout-sessions/Metadata.ts"
import { checkoutSession } from "../events/ProviderEvents.ts"
import { eventually } from "../harness/Eventually.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { newTenant } from "../payments/ConnectedTenant.ts"
import { makePrice } from "../surface/http/Payments.ts"
import { accepted, newEventId, notification, notify, outcomeOf, subscribe, withoutProvider } from "./Notifications.ts"

const makeShop = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const key = yield* tenant.keyOf(["*", "webhook-endpoints:*"])
  const price = (more: Readonly<Record<string, unknown>> = {}) =>
    Effect.gen(function* () {
      const id = yield* makePrice(service, { organizationId: tenant.id, key }, more)
      const { product } = yield* tenant.atProvider(`/prices/${id}`)
      return { id, product: String(product) }
    })
  return { ...tenant, key, price }
})

type Shop = Effect.Effect.Success<typeof makeShop>

const completionOf = (shop: Shop, sessionId: string) =>
  eventually(
    "the event",
    Effect.map(
      shop.sql<{ payload: string }>`
        SELECT payload FROM payments.events
        WHERE organization_id = ${shop.id} AND type = 'checkout.completed' AND payload LIKE ${`%${sessionId}%`}`,
      ([row]) => Option.map(Option.fromNullable(row), ({ payload }) => Object(JSON.parse(payload)).data)
    )
  )

const countTo = (shop: Shop, endpointId: string) =>
  Effect.map(
    shop.sql<{ count: number }>`
      SELECT count(*)::int AS count FROM payments.deliveries WHERE endpoint_id = ${endpointId}`,
    ([row]) => row?.count
  )

const submit = (url: string, fields: Readonly<Record<string, string>>) =>
  Effect.promise(() => fetch(url, { method: "POST", body: new URLSearchParams(fields), redirect: "manual" }))

const open = (link: string) =>
  Effect.map(
    Effect.promise(() => fetch(link, { redirect: "manual" })),
    ({ headers }) => headers.get("location") ?? ""
  )

const sessionOf = (page: string) => new URL(page).pathname.split("/").at(-1) ?? ""

const offerUpsell = (shop: Shop, price: string, upsell: string) =>
  Effect.flatMap(TestService, ({ emulator }) =>
    Effect.promise(async () => {
      const answer = await fetch(`${emulator.url}/_emulator/upsells`, {
        method: "POST",
        headers: { authorization: "Bearer sk_test_emulatorplatformkey" },
        body: JSON.stringify({ account: shop.accountId, price, upsell })
      })
      expect(answer.status, await answer.text()).toBe(200)
    })
  )

onSharedService("what a checkout session sold", (it) => {
  it.effect("is without a line that the payer removed, for consumers and for their filters", function* () {
    const shop = yield* makeShop
    const [kept, removed] = [yield* shop.price({ unit_amount: 1000 }), yield* shop.price({ unit_amount: 900_000 })]
    const byKept = yield* subscribe(shop, ["checkout.completed"], undefined, { prices: [kept.id] })
    const byRemoved = yield* subscribe(shop, ["checkout.completed"], undefined, { prices: [removed.id] })
    const byItsProduct = yield* subscribe(shop, ["checkout.completed"], undefined, { products: [removed.product] })
    const link = yield* shop.post("/payment-links", {
      line_items: [kept, removed].map(({ id }) => ({
        price: id,
        quantity: 1,
        adjustable_quantity: { enabled: true }
      }))
    })
    const page = yield* open(String(link.json["url"]))
    expect((yield* submit(page, { action: "pay", "quantities[1]": "0" })).status).toBeLessThan(400)
    expect(yield* completionOf(shop, sessionOf(page))).toMatchObject({
      amount_total: 1000,
      price_ids: [kept.id],
      product_ids: [kept.product]
    })
    expect(yield* countTo(shop, byKept.id)).toBe(1)
    expect(yield* countTo(shop, byRemoved.id)).toBe(0)
    expect(yield* countTo(shop, byItsProduct.id)).toBe(0)
  })

  for (const [name, trial] of [
    ["that costs more", {}],
    ["that costs as much today, since both begin with a trial", { trial_period_days: 14 }]
  ] as const) {
    it.effect(`is the price that the payer took instead, ${name}`, function* () {
      const shop = yield* makeShop
      const monthly = yield* shop.price({ unit_amount: 1000, recurring: { interval: "month", ...trial } })
      const yearly = yield* shop.price({ unit_amount: 10_000, recurring: { interval: "year", ...trial } })
      const byMonthly = yield* subscribe(shop, ["checkout.completed"], undefined, { prices: [monthly.id] })
      const byYearly = yield* subscribe(shop, ["checkout.completed"], undefined, { products: [yearly.product] })
      yield* offerUpsell(shop, monthly.id, yearly.id)
      const session = yield* shop.post("/checkout/sessions", {
        mode: "subscription",
        line_items: [{ price: monthly.id, quantity: 1 }]
      })
      const page = String(session.json["url"])
      expect((yield* submit(page, { action: "pay", "upsells[0]": "true" })).status).toBeLessThan(400)
      expect(yield* completionOf(shop, String(session.json["id"]))).toMatchObject({
        price_ids: [yearly.id],
        product_ids: [yearly.product]
      })
      expect([yield* countTo(shop, byMonthly.id), yield* countTo(shop, byYearly.id)]).toEqual([0, 1])
    })
  }

  it.effect("is read again while the provider is down only if it may differ from what was recorded", function* () {
    const shop = yield* makeShop
    const { id: price } = yield* shop.price()
    yield* subscribe(shop, ["checkout.completed"])
    const item = { price, quantity: 1 }
    const created = yield* shop.post("/checkout/sessions", { mode: "payment", line_items: [item] })
    const link = yield* shop.post("/payment-links", { line_items: [item] })
    const page = yield* open(String(link.json["url"]))
    const metadata = { [checkoutMarker.key]: checkoutMarker.value }
    const completed = (eventId: string, object: object) =>
      notify(
        notification(shop.accountId, {
          id: eventId,
          type: "checkout.session.completed",
          object: { ...checkoutSession, metadata, ...object }
        })
      )
    const session = { id: created.json["id"] }
    const uncertain = [
      { ...session, amount_subtotal: 2500 },
      { ...session, amount_subtotal: null },
      { ...session, optional_items: [{ price: "price_more", quantity: 1 }] },
      { id: sessionOf(page), payment_link: link.json["id"] }
    ].map((object) => ({ eventId: newEventId(), object }))
    const certain = newEventId()
    yield* withoutProvider(
      shop.accountId,
      Effect.gen(function* () {
        yield* accepted(completed(certain, { ...session, optional_items: [] }))
        for (const { eventId, object } of uncertain) {
          expect([object, (yield* completed(eventId, object)).status]).toEqual([object, 503])
          expect(yield* outcomeOf(eventId)).toBeUndefined()
        }
      })
    )
    for (const { eventId, object } of uncertain) {
      yield* accepted(completed(eventId, object))
      expect(yield* outcomeOf(eventId)).toBe("delivered")
    }
  })
})
