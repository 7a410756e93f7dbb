import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { eventuallyDone } from "../harness/Eventually.ts"
import { onSharedService } from "../harness/TestService.ts"
import { dataOf, newTenant, newTenantWithPrice, part, payAt, priceOf, type Tenant } from "./ConnectedTenant.ts"

const search = (tenant: Tenant, body: unknown, key = tenant.key) => tenant.send("POST", "/search", { key, body })

const idsOf = (tenant: Tenant, body: unknown) =>
  Effect.map(search(tenant, body), ({ json, status, text }) => {
    expect(status, text).toBe(200)
    return dataOf(json).map(({ id }) => id)
  })

/** A session of R$15.00 for an order. */
const sell = (tenant: Tenant, order?: string) =>
  Effect.gen(function* () {
    const { price } = yield* priceOf(tenant)
    const body = { mode: "payment", line_items: [{ price, quantity: 3 }] }
    const created = yield* tenant.post("/checkout/sessions", order ? { ...body, client_reference_id: order } : body)
    expect(created.status, created.text).toBe(200)
    return created.json
  })

const salesOf = (tenant: Tenant) =>
  Effect.map(tenant.get("/payment-intents?sale=true"), ({ json }) => dataOf(json).map(({ sale }) => sale))

/** Waits until the provider's reports have arrived. */
const untilSold = (tenant: Tenant, count: number) =>
  eventuallyDone(
    "the sales are recorded",
    Effect.map(salesOf(tenant), (sales) => sales.filter((sale) => sale !== null).length === count)
  )

onSharedService("a search", (it) => {
  it.effect("finds the sessions of an order, paid or not, newest first, and nobody else's", function* () {
    const [tenant, other] = [yield* newTenant, yield* newTenant]
    const first = yield* sell(tenant, "order-4711")
    const second = yield* sell(tenant, "order-4711")
    yield* sell(tenant, "order-47110")
    yield* sell(other, "order-4711")
    yield* payAt(first["url"])
    expect(yield* idsOf(tenant, { client_reference_id: "order-4711" })).toEqual([second["id"], first["id"]])
    expect(yield* idsOf(tenant, { client_reference_id: "order" })).toEqual([])
    yield* untilSold(tenant, 1)
    expect(yield* salesOf(tenant)).toEqual([
      {
        checkout_session: first["id"],
        description: "3 × Coffee",
        client_reference_id: "order-4711",
        checkout_page: null
      }
    ])
    expect(Object.keys(dataOf((yield* tenant.get("/payment-intents")).json)[0] ?? {})).not.toContain("sale")
  })

  it.effect("finds a payer's sessions by the whole address, for who may see it alone", function* () {
    const tenant = yield* newTenant
    const session = yield* sell(tenant)
    yield* payAt(session["url"], { email: "ana@shop.example" })
    const refused = yield* search(tenant, { email: "ana@shop.example" })
    expect([refused.status, refused.json["code"]]).toEqual([403, "permission_denied"])
    const entrusted = yield* tenant.keyOf(["payments:read", "customers:read"])
    const found = yield* search(tenant, { email: "ana@shop.example" }, entrusted)
    expect(dataOf(found.json)).toMatchObject([{ id: session["id"], customer_details: { email: "ana@shop.example" } }])
    expect(dataOf((yield* search(tenant, { email: "na@shop.example" }, entrusted)).json)).toEqual([])
  })

  it.effect("finds payments by their amount, with what they sold, also by a payment link", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const link = yield* tenant.post("/payment-links", { line_items: [{ price, quantity: 3 }] })
    const opened = yield* Effect.promise(() => fetch(String(link.json["url"]), { redirect: "manual" }))
    yield* payAt(opened.headers.get("location"))
    yield* untilSold(tenant, 1)
    const found = dataOf((yield* search(tenant, { amount: 4500 })).json)
    expect(found).toMatchObject([{ object: "payment_intent", amount: 4500, sale: { description: "3 × Coffee" } }])
    expect(yield* idsOf(tenant, { amount: 4500, currency: "brl" })).toEqual([part(found, 0)["id"]])
    expect(yield* idsOf(tenant, { amount: 4500, currency: "jpy" })).toEqual([])
    expect(yield* idsOf(tenant, { amount: 4501 })).toEqual([])
  })

  it.effect("takes exactly one thing to look for", function* () {
    const tenant = yield* newTenant
    for (const [body, field] of [
      [{}, "client_reference_id"],
      [{ client_reference_id: "a", amount: 1 }, "amount"],
      [{ client_reference_id: "a", currency: "brl" }, "currency"],
      [{ amount: -1 }, "amount"],
      [{ client_reference_id: "" }, "client_reference_id"],
      [{ email: "nobody" }, "email"]
    ] as const) {
      const { json, status } = yield* search(tenant, body)
      expect([status, json["code"], json["fields"]]).toEqual([422, "validation_failed", [field]])
    }
  })
})
