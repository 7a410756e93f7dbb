import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { onSharedService, type RequestOptions, type TestOrganization, TestService } from "../harness/TestService.ts"
import { expectFailure } from "../http/Refusals.ts"
import { idOf } from "../http/Samples.ts"
import { overHttp } from "../mcp/McpClient.ts"
import { newTenant } from "./ConnectedTenant.ts"

/** One organization's requests, and its account as the provider itself shows it. */
const callerOf = (organization: TestOrganization) =>
  Effect.map(TestService, ({ emulator, options, request }) => {
    const path = `/v2/organizations/${organization.id}/provider`
    const send = (method: string, suffix: string, requestOptions: RequestOptions = {}) =>
      request(method, `${path}${suffix}`, { key: organization.testKey, ...requestOptions })
    const secretKey = Option.match(options.provider.sandbox, {
      onNone: () => "",
      onSome: ({ secretKey }) => Redacted.value(secretKey)
    })
    return {
      get: (suffix: string) => send("GET", suffix),
      post: (suffix: string, body: unknown, key: string = randomUUID()) =>
        send("POST", suffix, { body, headers: { "idempotency-key": key } }),
      atProvider: (suffix: string) =>
        Effect.promise(async (): Promise<Record<string, unknown>> => {
          const response = await fetch(`${emulator.url}/v1${suffix}`, {
            headers: { authorization: `Bearer ${secretKey}`, "stripe-account": organization.accountId }
          })
          return Object(await response.json())
        })
    }
  })

const mine = Effect.flatMap(TestService, ({ organization }) => callerOf(organization))

type Caller = Effect.Effect.Success<typeof mine>

const price = (caller: Caller, body: Readonly<Record<string, unknown>> = {}) =>
  Effect.gen(function* () {
    const product = idOf(yield* caller.post("/products", { name: "Coffee" }))
    return {
      product,
      price: idOf(yield* caller.post("/prices", { product, currency: "brl", unit_amount: 1500, ...body }))
    }
  })

const session = (priceId: string, more: Readonly<Record<string, unknown>> = {}) => ({
  mode: "payment",
  line_items: [{ price: priceId, quantity: 1 }],
  ...more
})

const count = (list: Record<string, unknown>) => (Array.isArray(list["data"]) ? list["data"].length : -1)

onSharedService("writes at the provider", (it) => {
  it.effect("with the same key and parameters make one object and answer alike", () =>
    Effect.gen(function* () {
      const caller = yield* mine
      const made = yield* price(caller)
      const before = count(yield* caller.atProvider("/products?limit=100"))
      for (const [path, body] of [
        ["/products", { name: "Tea" }],
        ["/prices", { product: made.product, currency: "brl", unit_amount: 700 }],
        ["/checkout/sessions", session(made.price)]
      ] as const) {
        const key = randomUUID()
        const first = yield* caller.post(path, body, key)
        expect(first.status, first.text).toBe(200)
        const second = yield* caller.post(path, body, key)
        expect([second.status, second.text], path).toEqual([200, first.text])
      }
      expect(count(yield* caller.atProvider("/products?limit=100"))).toBe(before + 1)
    })
  )

  it.scoped("without a key keep nothing of their answer, and are on record", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* TestService
      const tenant = yield* newTenant
      const product = idOf(yield* tenant.post("/products", { name: "Coffee" }))
      const keys = Effect.map(
        tenant.sql<{ key: string }>`
          SELECT key FROM payments.idempotency_keys WHERE organization_id = ${tenant.id} AND environment = 'sandbox'`,
        (rows) => rows.length
      )
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
      expect(yield* keys).toBe(before)
      expect((yield* tenant.audited).filter((entry) => entry === `product.updated ${product}`)).toHaveLength(2)
    })
  )

  it.effect("with the same key at once make one object", () =>
    Effect.gen(function* () {
      const caller = yield* mine
      const before = count(yield* caller.atProvider("/products?limit=100"))
      const key = randomUUID()
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, () => caller.post("/products", { name: "Tea" }, key)),
        { concurrency: 8 }
      )
      const done = answers.filter(({ status }) => status === 200)
      expect(done.length).toBeGreaterThanOrEqual(1)
      expect(new Set(done.map(idOf)).size).toBe(1)
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        expectFailure(answer, { status: 409, code: "idempotency_request_in_progress", fields: [] })
        expect(answer.headers.get("retry-after")).toBe("1")
      }
      expect(count(yield* caller.atProvider("/products?limit=100"))).toBe(before + 1)
    })
  )

  it.effect("with the same key and other parameters are refused", () =>
    Effect.gen(function* () {
      const caller = yield* mine
      const key = randomUUID()
      expect((yield* caller.post("/products", { name: "Tea" }, key)).status).toBe(200)
      const reused = { status: 409, code: "idempotency_key_reused", fields: [] }
      expectFailure(yield* caller.post("/products", { name: "Milk" }, key), reused)
    })
  )

  it.effect("with equal keys of two organizations make two objects", () =>
    Effect.gen(function* () {
      const { stranger } = yield* TestService
      const [caller, other] = [yield* mine, yield* callerOf(stranger)]
      const key = randomUUID()
      const [first, second] = [
        yield* caller.post("/products", { name: "Tea" }, key),
        yield* other.post("/products", { name: "Tea" }, key)
      ]
      expect(idOf(first)).not.toBe(idOf(second))
      expect((yield* caller.get(`/products/${idOf(second)}`)).status).toBe(404)
    })
  )

  it.effect("answer the provider's object under its own names, and reads and lists show it", () =>
    Effect.gen(function* () {
      const caller = yield* mine
      const { product, price: priceId } = yield* price(caller, { nickname: "Small", metadata: { order: "7" } })
      expect((yield* caller.get(`/products/${product}`)).json).toMatchObject({
        id: product,
        name: "Coffee",
        livemode: false
      })
      const read = yield* caller.get(`/prices/${priceId}`)
      expect(read.json).toMatchObject({
        id: priceId,
        product,
        currency: "brl",
        unit_amount: 1500,
        nickname: "Small",
        metadata: { order: "7" }
      })
      for (const [path, id] of [
        ["/products?limit=1", product],
        [`/prices?limit=1&product=${product}`, priceId]
      ] as const) {
        const { json } = yield* caller.get(path)
        expect(json).toMatchObject({ data: [{ id }] })
        expect(typeof json["has_more"]).toBe("boolean")
      }
    })
  )

  it.effect("page through lists by cursor, newest first, each object once", () =>
    Effect.gen(function* () {
      const { stranger } = yield* TestService
      const caller = yield* callerOf(stranger)
      const { product } = yield* price(caller)
      const ids: Array<string> = []
      for (let n = 0; n < 4; n++) {
        ids.unshift(idOf(yield* caller.post("/prices", { product, currency: "brl", unit_amount: n })))
      }
      const seen: Array<string> = []
      for (let more = true; more; ) {
        const last = seen.at(-1)
        const cursor = last === undefined ? "" : `&starting_after=${last}`
        const { json } = yield* caller.get(`/prices?product=${product}&limit=2${cursor}`)
        const data: ReadonlyArray<{ id: string }> = Array.isArray(json["data"]) ? json["data"] : []
        expect(data.length).toBeGreaterThan(0)
        seen.push(...data.map(({ id }) => id))
        more = json["has_more"] === true
      }
      expect(seen.slice(0, 4)).toEqual(ids)
      expect(seen).toHaveLength(5)
      expect(new Set(seen).size).toBe(5)
    })
  )

  it.effect("drop usage_type and keep the rest of a recurrence", () =>
    Effect.gen(function* () {
      const caller = yield* mine
      const recurring = { interval: "month", interval_count: 3 }
      const { price: id } = yield* price(caller, { recurring: { ...recurring, usage_type: "metered" } })
      const stored = yield* caller.atProvider(`/prices/${id}`)
      expect(stored["recurring"]).toMatchObject({ ...recurring, usage_type: "licensed" })
    })
  )

  it.effect("copy a session's metadata to its payment, and keep the service's own mark to the session", () =>
    Effect.gen(function* () {
      const caller = yield* mine
      const metadata = { order: "42", channel: "web" }
      const { price: once } = yield* price(caller)
      const made = yield* caller.post("/checkout/sessions", session(once, { metadata }))
      expect(made.status, made.text).toBe(200)
      expect(made.json["metadata"]).toMatchObject(metadata)
      yield* Effect.promise(() =>
        fetch(String(made.json["url"]), {
          method: "POST",
          body: new URLSearchParams({ action: "pay" }),
          redirect: "manual"
        })
      )
      const paid = yield* caller.get(`/checkout/sessions/${idOf(made)}`)
      expect(paid.json).toMatchObject({ status: "complete", payment_status: "paid" })
      const intent = yield* caller.atProvider(`/payment_intents/${paid.json["payment_intent"]}`)
      expect(intent["metadata"]).toEqual(metadata)
    })
  )

  it.effect("send payers back to the operator's pages, and to no others", () =>
    Effect.gen(function* () {
      const { options } = yield* TestService
      const caller = yield* mine
      const { price: id } = yield* price(caller)
      const made = yield* caller.post("/checkout/sessions", session(id))
      const stored = yield* caller.atProvider(`/checkout/sessions/${idOf(made)}`)
      expect(stored).toMatchObject({
        success_url: options.provider.checkoutSuccessUrl,
        cancel_url: options.provider.checkoutCancelUrl
      })
      for (const field of ["success_url", "cancel_url", "return_url", "url", "after_expiration"]) {
        const refused = yield* caller.post("/checkout/sessions", session(id, { [field]: "https://evil.example" }))
        expectFailure(refused, { status: 422, code: "validation_failed", fields: [field] })
      }
    })
  )

  it.effect("need subscriptions:write beside payments:write for a recurring price", () =>
    Effect.gen(function* () {
      const { makeKey, organization, request } = yield* TestService
      const caller = yield* mine
      const { price: id } = yield* price(caller, { recurring: { interval: "month" } })
      const send = (key: string) =>
        request("POST", `/v2/organizations/${organization.id}/provider/checkout/sessions`, {
          key,
          headers: { "idempotency-key": randomUUID() },
          body: session(id, { mode: "subscription" })
        })
      const without = yield* send(yield* makeKey(organization.id, ["payments:write"]))
      expectFailure(without, { status: 403, code: "permission_denied", fields: [] })
      expect(without.json["error"]).toContain("subscriptions:write")
    })
  )

  it.effect("remember what a session sells, each price and product once, and once however often it is repeated", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* TestService
      const caller = yield* mine
      const first = yield* price(caller)
      const second = yield* price(caller)
      const items = [first, second, first].map(({ price }) => ({ price, quantity: 1 }))
      const key = randomUUID()
      const body = { mode: "payment", line_items: items }
      const made = yield* caller.post("/checkout/sessions", body, key)
      expect(made.status, made.text).toBe(200)
      yield* caller.post("/checkout/sessions", body, key)
      const rows = yield* sql`
        SELECT organization_id, environment, price_ids, product_ids FROM payments.sold_items
        WHERE source_id = ${idOf(made)}`
      expect(rows).toEqual([
        {
          organization_id: organization.id,
          environment: "sandbox",
          price_ids: [first.price, second.price],
          product_ids: [first.product, second.product]
        }
      ])
    })
  )
})
