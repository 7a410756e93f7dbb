import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { checkoutMarker } from "../../src/payments/checkout-sessions/Metadata.ts"
import { checkoutSession, invoice, subscription } from "../events/ProviderEvents.ts"
import { eventually } from "../harness/Eventually.ts"
import { inDatabase, onSharedService, TestService } from "../harness/TestService.ts"
import { dataOf, newTenant, part } from "../payments/ConnectedTenant.ts"
import { makePrice } from "../surface/http/Payments.ts"
import {
  accepted,
  makeSubscriber,
  newEventId,
  notification,
  notify,
  outcomeOf,
  subscribe,
  typesTo,
  withoutProvider
} from "./Notifications.ts"

const makeTenant = Effect.gen(function* () {
  const tenant = yield* newTenant
  return { ...tenant, key: yield* tenant.keyOf(["*", "webhook-endpoints:*"]) }
})

/** A subscription of twelve prices, of which the provider's notifications name ten. */
const settled = (providerEventId: string) =>
  eventually("the receipt", Effect.map(outcomeOf(providerEventId), Option.fromNullable))

const makeSubscription = Effect.gen(function* () {
  const { emulator } = yield* TestService
  const tenant = yield* makeTenant
  const { events, object: id } = yield* emulator.trigger({
    type: "customer.subscription.created",
    account: tenant.accountId,
    items: 12
  })
  // An endpoint that is created later gets none of them
  yield* Effect.forEach(events, (event) => settled(event.id))
  const items = dataOf(yield* tenant.atProvider(`/subscription_items?subscription=${id}&limit=100`))
  expect(items).toHaveLength(12)
  const price = part(items.at(-1), "price")
  return { tenant, id, priceId: String(price["id"]), productId: String(price["product"]) }
})

const cut = (first: unknown) => ({ object: "list", data: [first], has_more: true })

onSharedService("what a notification leaves out", (it) => {
  it.effect("is fetched where an endpoint filters by what a subscription's items sell", function* () {
    const { emulator } = yield* TestService
    const { id, priceId, productId, tenant } = yield* makeSubscription
    const byPrice = yield* subscribe(tenant, ["subscription.canceled"], undefined, { prices: [priceId] })
    const byProduct = yield* subscribe(tenant, ["subscription.canceled"], undefined, { products: [productId] })
    const byOther = yield* subscribe(tenant, ["subscription.canceled"], undefined, { products: ["prod_other"] })
    const { events } = yield* emulator.trigger({
      type: "customer.subscription.deleted",
      account: tenant.accountId,
      subscription: id
    })
    const canceled = events.find(({ type }) => type === "customer.subscription.deleted")
    expect(yield* settled(canceled?.id ?? "")).toBe("delivered")
    expect(yield* typesTo(byPrice.id)).toEqual(["subscription.canceled"])
    expect(yield* typesTo(byProduct.id)).toEqual(["subscription.canceled"])
    expect(yield* typesTo(byOther.id)).toEqual([])
  })

  it.effect("is fetched where an endpoint filters by what an invoice's lines sell", function* () {
    const { emulator } = yield* TestService
    const { id, priceId, tenant } = yield* makeSubscription
    const endpoint = yield* subscribe(tenant, ["subscription.renewed"], undefined, { prices: [priceId] })
    const { events } = yield* emulator.trigger({
      type: "invoice.paid",
      account: tenant.accountId,
      subscription: id
    })
    expect(yield* settled(events.find(({ type }) => type === "invoice.paid")?.id ?? "")).toBe("delivered")
    expect(yield* typesTo(endpoint.id)).toEqual(["subscription.renewed"])
  })

  it.effect("is not asked for where nobody filters by it", function* () {
    const { tenant } = yield* makeSubscriber(["subscription.created", "subscription.renewed"], undefined, {
      metadata: { a: "b" }
    })
    yield* subscribe(tenant, ["payment.succeeded"], undefined, { products: ["prod_1"] })
    const all = yield* subscribe(tenant, ["subscription.created", "subscription.renewed"])
    const bodies = [
      notification(tenant.accountId, {
        type: "customer.subscription.created",
        object: { ...subscription, items: cut({ id: "si_1", price: { id: "price_1", product: "prod_1" } }) }
      }),
      notification(tenant.accountId, {
        type: "invoice.paid",
        object: { ...invoice, lines: cut({ id: "il_1", price: { id: "price_1", product: "prod_1" } }) }
      })
    ]
    yield* withoutProvider(
      tenant.accountId,
      Effect.forEach(bodies, (body) => accepted(notify(body)))
    )
    expect(yield* typesTo(all.id)).toEqual(["subscription.created", "subscription.renewed"])
  })

  it.effect("is asked for again if the provider is down: 503, nothing stored, the repeat once", function* () {
    const { id, priceId, tenant } = yield* makeSubscription
    const endpoint = yield* subscribe(tenant, ["subscription.created"], undefined, { prices: [priceId] })
    const eventId = newEventId()
    const body = notification(tenant.accountId, {
      id: eventId,
      type: "customer.subscription.created",
      object: { ...subscription, id, items: cut({ id: "si_1", price: { id: "price_1", product: "prod_1" } }) }
    })
    const refused = yield* withoutProvider(tenant.accountId, notify(body))
    expect([refused.status, refused.json["code"]]).toEqual([503, "service_unavailable"])
    expect([yield* outcomeOf(eventId), yield* typesTo(endpoint.id)]).toEqual([undefined, []])
    yield* accepted(notify(body))
    yield* accepted(notify(body))
    expect([yield* outcomeOf(eventId), yield* typesTo(endpoint.id)]).toEqual(["delivered", ["subscription.created"]])
  })

  const open = Effect.gen(function* () {
    const service = yield* TestService
    const tenant = yield* makeTenant
    const priceId = yield* makePrice(service, tenant)
    const session = yield* tenant.post("/checkout/sessions", {
      mode: "payment",
      line_items: [{ price: priceId, quantity: 1 }]
    })
    const id = String(session.json["id"])
    const recorded = service.sql<{ prices: ReadonlyArray<string>; products: ReadonlyArray<string> }>`
      SELECT price_ids AS prices, product_ids AS products FROM payments.sold_items
      WHERE organization_id = ${tenant.id} AND source_id = ${id}`
    return { tenant, priceId, id, url: String(session.json["url"]), recorded }
  })

  const soldIn = (providerEventId: string) =>
    Effect.map(
      inDatabase<{ payload: string }>`SELECT payload FROM payments.events WHERE provider_event_id = ${providerEventId}`,
      ([row]) => Object(JSON.parse(row?.payload ?? "{}")).data
    )

  it.effect("is what a session of ours sells, where a crash kept it from being recorded", function* () {
    const { id, priceId, recorded, tenant, url } = yield* open
    const endpoint = yield* subscribe(tenant, ["checkout.completed"], undefined, { prices: [priceId] })
    const before = yield* recorded
    expect(before.map(({ prices }) => prices)).toEqual([[priceId]])
    yield* inDatabase`DELETE FROM payments.sold_items WHERE source_id = ${id}`
    yield* Effect.promise(() =>
      fetch(url, { method: "POST", body: new URLSearchParams({ action: "pay" }), redirect: "manual" })
    )
    yield* eventually(
      "the delivery",
      Effect.map(typesTo(endpoint.id), (types) => (types.length === 0 ? Option.none() : Option.some(types)))
    )
    expect(yield* recorded).toEqual(before)
  })

  it.effect("is asked for only if a session of ours has no record, and again if the provider is down", function* () {
    const { id, priceId, tenant } = yield* open
    yield* subscribe(tenant, ["checkout.completed"])
    const completed = (eventId: string, object: object) =>
      notify(
        notification(tenant.accountId, {
          id: eventId,
          type: "checkout.session.completed",
          object: { ...checkoutSession, ...object }
        })
      )
    const marked = { id, metadata: { [checkoutMarker.key]: checkoutMarker.value } }
    const [known, foreign, alike, lost] = [newEventId(), newEventId(), newEventId(), newEventId()]
    yield* withoutProvider(
      tenant.accountId,
      Effect.gen(function* () {
        yield* accepted(completed(known, marked))
        yield* accepted(completed(foreign, { id: "cs_test_foreign", metadata: {} }))
        yield* accepted(completed(alike, { id: "cs_test_alike", metadata: { [checkoutMarker.key]: "other" } }))
        yield* inDatabase`DELETE FROM payments.sold_items WHERE source_id = ${id}`
        expect((yield* completed(lost, marked)).status).toBe(503)
      })
    )
    expect(yield* soldIn(known)).toMatchObject({ price_ids: [priceId] })
    for (const eventId of [foreign, alike]) {
      expect(yield* soldIn(eventId)).toMatchObject({ price_ids: null, product_ids: null })
    }
    expect(yield* outcomeOf(lost)).toBeUndefined()
    yield* accepted(completed(lost, marked))
    expect(yield* soldIn(lost)).toMatchObject({ price_ids: [priceId] })
  })
})
