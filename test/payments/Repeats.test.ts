import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, onSharedService, TestService } from "../harness/TestService.ts"
import { makeMoney } from "../surface/http/Payments.ts"
import { expectFailure } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { overHttp } from "../surface/mcp/McpClient.ts"
import { dataOf, newTenant, newTenantWithProduct, type Tenant } from "./ConnectedTenant.ts"

const isReplay = ({ headers }: Answer) => headers.get("idempotent-replayed") === "true"

const reused = { status: 409, code: "idempotency_key_reused", fields: [] }
const notConnected = { status: 409, code: "provider_account_not_connected", fields: [] }

const writesOf = (tenant: Tenant) =>
  Effect.gen(function* () {
    const service = yield* TestService
    const product = idOf(yield* tenant.post("/products", { name: "Coffee" }))
    const newPrice = (more: object = {}) =>
      Effect.map(tenant.post("/prices", { product, currency: "brl", unit_amount: 1500, ...more }), idOf)
    const priceId = yield* newPrice()
    const monthly = yield* newPrice({ recurring: { interval: "month" } })
    const money = yield* makeMoney(service, { ...tenant, priceId })
    const code = { discount: { percent_off: 5 }, duration: "once" }
    const promotionCode = idOf(yield* tenant.post("/promotion-codes", { ...code, code: "FIRST" }))
    const lines = (price: string) => ({ line_items: [{ price, quantity: 1 }] })
    const link = idOf(yield* tenant.post("/payment-links", lines(priceId)))
    return [
      ["POST", "/products", { name: "Tea" }],
      ["PATCH", `/products/${product}`, { name: "Milk" }],
      ["PATCH", `/products/${product}`, { default_price_data: { currency: "brl", unit_amount: 7 } }],
      ["POST", "/prices", { product, currency: "brl", unit_amount: 5 }],
      ["POST", "/checkout/sessions", { mode: "payment", ...lines(priceId) }],
      ["POST", "/checkout/sessions", { mode: "subscription", ...lines(monthly) }],
      ["POST", "/promotion-codes", { ...code, code: "SECOND" }],
      ["PATCH", `/promotion-codes/${promotionCode}`, { active: false }],
      ["POST", "/payment-links", lines(priceId)],
      ["POST", "/payment-links", lines(monthly)],
      ["PATCH", `/payment-links/${link}`, { active: false }],
      ["POST", "/refunds", { payment_intent: money.paymentIntentId, amount: 1 }],
      ["PATCH", `/subscriptions/${money.subscriptionId}`, { cancel_at_period_end: true }],
      ["POST", `/subscriptions/${money.subscriptionId}/cancel`, undefined]
    ] as const
  })

const keyed = (tenant: Tenant, method: string, path: string, body: unknown, idempotencyKey: string, key = tenant.key) =>
  tenant.send(method, path, {
    key,
    headers: { "idempotency-key": idempotencyKey },
    ...(body === undefined ? {} : { body })
  })

const setStatus = (tenant: Tenant, status: "connected" | "disconnected") => tenant.sql`
  UPDATE payments.provider_accounts
  SET status = ${status}, disconnected_at = ${status === "connected" ? null : new Date()}
  WHERE organization_id = ${tenant.id}`

onSharedService("a repeat of a write", (it) => {
  it.effect("gets the stored answer while the provider is away, and after the account was disconnected", function* () {
    const tenant = yield* newTenant
    const done: Array<{ readonly again: Effect.Effect<Answer>; readonly first: Answer; readonly name: string }> = []
    for (const [method, path, body] of yield* writesOf(tenant)) {
      const again = keyed(tenant, method, path, body, randomUUID())
      const first = yield* again
      expect(first.status, `${method} ${path} ${first.text}`).toBe(200)
      done.push({ again, first, name: `${method} ${path}` })
    }
    const repeatAll = Effect.forEach(done, ({ again, first, name }) =>
      Effect.map(again, (repeat) => {
        expect([repeat.status, isReplay(repeat)], `${name} ${repeat.text}`).toEqual([200, true])
        expect(repeat.text, name).toBe(first.text)
      })
    )
    yield* tenant.during({ fault: "reset" }, repeatAll)
    yield* setStatus(tenant, "disconnected")
    yield* repeatAll
  })

  it.effect("is made once the account is connected, with the same parameters or others", function* () {
    const tenant = yield* newTenant
    const writes = yield* writesOf(tenant)
    yield* setStatus(tenant, "disconnected")
    const keys = writes.map(() => randomUUID())
    for (const [index, [method, path, body]] of writes.entries()) {
      expectFailure(yield* keyed(tenant, method, path, body, keys[index] ?? ""), notConnected, path)
    }
    yield* setStatus(tenant, "connected")
    for (const [index, [method, path, body]] of writes.entries()) {
      const made = yield* keyed(tenant, method, path, body, keys[index] ?? "")
      expect([made.status, isReplay(made)], `${path} ${made.text}`).toEqual([200, false])
    }
  })

  it.effect("at the same time makes nothing; with the key of another organization it is no repeat", function* () {
    const [tenant, other] = [yield* newTenant, yield* newTenant]
    const key = randomUUID()
    const answers = yield* Effect.all(
      Array.from({ length: 8 }, () => tenant.post("/products", { name: "Tea" }, key)),
      { concurrency: 8 }
    )
    const [made, ...done] = answers.filter(({ status }) => status === 200).map(idOf)
    expect(made).toBeDefined()
    expect(new Set(done)).toEqual(new Set(done.map(() => made)))
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expectFailure(answer, { status: 409, code: "idempotency_request_in_progress", fields: [] })
      expect(answer.headers.get("retry-after")).toBe("1")
    }
    expect(dataOf(yield* tenant.atProvider("/products"))).toHaveLength(1)
    const theirs = idOf(yield* other.post("/products", { name: "Tea" }, key))
    expect((yield* tenant.get(`/products/${theirs}`)).status).toBe(404)
  })

  it.scoped("without a key is made again, keeps nothing of its answer, and is on record", function* () {
    const { baseUrl } = yield* TestService
    const { product, tenant } = yield* newTenantWithProduct
    const keys = tenant.sql`
        SELECT key FROM payments.idempotency_keys WHERE organization_id = ${tenant.id} AND environment = 'sandbox'`
    const before = yield* keys
    const changed = yield* tenant.send("PATCH", `/products/${product}`, { body: { name: "Tea" } })
    expect([changed.status, changed.json["name"], changed.headers.get("content-type")]).toEqual([
      200,
      "Tea",
      "application/json"
    ])
    const agent = yield* overHttp(baseUrl, tenant.key)
    const byTool = yield* agent.call("update_product", { id: product, name: "Milk" })
    expect([byTool.isError, byTool.json["name"]]).toEqual([false, "Milk"])
    expect(yield* keys).toEqual(before)
    expect((yield* tenant.audited).filter((entry) => entry === `product.updated ${product}`)).toHaveLength(2)
  })

  it.effect("of a payment link is for those alone who may sell what recurs, if it does", function* () {
    const tenant = yield* newTenant
    const limited = yield* tenant.keyOf(["payments:write"])
    const product = idOf(yield* tenant.post("/products", { name: "Coffee" }))
    const linkAt = (more: object) =>
      Effect.gen(function* () {
        const price = idOf(yield* tenant.post("/prices", { product, currency: "brl", unit_amount: 5, ...more }))
        const key = randomUUID()
        const body = { line_items: [{ price, quantity: 1 }] }
        expect((yield* tenant.post("/payment-links", body, key)).status).toBe(200)
        return yield* keyed(tenant, "POST", "/payment-links", body, key, limited)
      })
    const once = yield* linkAt({})
    expect([once.status, isReplay(once)]).toEqual([200, true])
    const monthly = yield* linkAt({ recurring: { interval: "month" } })
    expectFailure(monthly, { status: 403, code: "permission_denied", fields: [] })
  })

  it.effect("that the provider refused is made under its key, corrected or once the cause is gone", function* () {
    const { product, tenant } = yield* newTenantWithProduct
    const price = idOf(yield* tenant.post("/prices", { product, currency: "brl", unit_amount: 1500 }))
    const body = { mode: "payment", line_items: [{ price, quantity: 1 }] }
    yield* tenant.doAtProvider(`/prices/${price}`, { active: "false" })
    const key = randomUUID()
    const inactive = { status: 422, code: "provider_invalid_request_error", fields: ["line_items.0.price"] }
    expectFailure(yield* tenant.post("/checkout/sessions", body, key), inactive)
    const corrected = randomUUID()
    expectFailure(yield* tenant.post("/checkout/sessions", body, corrected), inactive)
    yield* tenant.doAtProvider(`/prices/${price}`, { active: "true" })
    for (const [used, more] of [
      [key, {}],
      [corrected, { client_reference_id: "order-2" }]
    ] as const) {
      const made = yield* tenant.post("/checkout/sessions", { ...body, ...more }, used)
      expect(made.status, made.text).toBe(200)
      expect(isReplay(yield* tenant.post("/checkout/sessions", { ...body, ...more }, used))).toBe(true)
    }
  })

  it.effect("whose outcome is open is that request and no other, and finds what the first one made", function* () {
    const tenant = yield* newTenant
    const key = randomUUID()
    const lost = yield* tenant.during(
      { fault: "lost_answer", method: "POST", path: "/v1/products" },
      tenant.post("/products", { name: "Coffee" }, key)
    )
    expect(lost.status).toBe(502)
    expectFailure(yield* tenant.post("/products", { name: "Tea" }, key), reused)
    yield* setStatus(tenant, "disconnected")
    expectFailure(yield* tenant.post("/products", { name: "Coffee" }, key), notConnected)
    yield* setStatus(tenant, "connected")
    expectFailure(yield* tenant.post("/products", { name: "Tea" }, key), reused)
    expect((yield* tenant.post("/products", { name: "Coffee" }, key)).status).toBe(200)
    expect(dataOf(yield* tenant.atProvider("/products"))).toHaveLength(1)
  })
})
