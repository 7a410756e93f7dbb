import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { eventually } from "../harness/Eventually.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { dataOf, newTenant, newTenantWithPrice, part, payAt, soldItems } from "./ConnectedTenant.ts"

const payThrough = (url: string) =>
  Effect.flatMap(
    Effect.promise(() => fetch(url, { redirect: "manual" })),
    ({ headers }) => payAt(headers.get("location"))
  )

const monthly = { recurring: { interval: "month", trial_period_days: 14 } }

onSharedService("payment links", (it) => {
  it.effect("are made with everything that they can have, and what they sell is remembered", function* () {
    const { price, product, tenant } = yield* newTenantWithPrice()
    const made = yield* tenant.post("/payment-links", {
      line_items: [{ price, quantity: 2, adjustable_quantity: { enabled: true, minimum: 1, maximum: 10 } }],
      allow_promotion_codes: true,
      restrictions: { completed_sessions: { limit: 100 } },
      inactive_message: "Sold out",
      after_completion: {
        type: "hosted_confirmation",
        hosted_confirmation: { custom_message: "Thank you" }
      },
      metadata: { campaign: "summer" }
    })
    expect(made.status, made.text).toBe(200)
    const expected = {
      active: true,
      allow_promotion_codes: true,
      restrictions: { completed_sessions: { limit: 100, count: 0 } },
      inactive_message: "Sold out",
      after_completion: { type: "hosted_confirmation", hosted_confirmation: { custom_message: "Thank you" } },
      metadata: { campaign: "summer" },
      payment_intent_data: { metadata: { campaign: "summer" } },
      line_items: { data: [{ quantity: 2, price: { id: price } }] }
    }
    expect(made.json).toMatchObject(expected)
    expect(made.json["url"]).toMatch(/^https?:\/\//)
    const id = idOf(made)
    expect((yield* tenant.get(`/payment-links/${id}`)).json).toMatchObject(expected)
    expect(dataOf((yield* tenant.get("/payment-links")).json)).toMatchObject([expected])
    expect(yield* soldItems(tenant, id)).toEqual({ prices: [price], products: [product] })
    expect(yield* tenant.audited).toContain(`payment_link.created ${id}`)
  })

  it.effect("remember and show all they sell, though the provider shows but ten lines with them", function* () {
    const { product, tenant } = yield* newTenantWithPrice()
    const prices = yield* Effect.forEach(Array.from({ length: 20 }), (_, n) =>
      Effect.map(tenant.post("/prices", { product, currency: "brl", unit_amount: n + 100 }), idOf)
    )
    const made = yield* tenant.post("/payment-links", {
      line_items: prices.map((price) => ({ price, quantity: 1 }))
    })
    expect(made.status, made.text).toBe(200)
    const id = idOf(made)
    expect((yield* soldItems(tenant, id))?.prices).toEqual(prices)
    const lines = {
      object: "list",
      has_more: false,
      data: prices.map((price) => ({ price: { id: price, product } }))
    }
    expect(made.json["line_items"]).toMatchObject(lines)
    expect((yield* tenant.get(`/payment-links/${id}`)).json).toEqual(made.json)
    expect(dataOf((yield* tenant.get("/payment-links")).json)).toEqual([made.json])
    const closed = yield* tenant.patch(`/payment-links/${id}`, { active: false })
    expect(closed.json).toEqual({ ...made.json, active: false })

    const page = (query = "") => Effect.map(tenant.get(`/payment-links/${id}/line-items${query}`), ({ json }) => json)
    const first = yield* page()
    expect(first).toMatchObject({ has_more: true, data: lines.data.slice(0, 10) })
    const last = yield* page(`?limit=11&starting_after=${dataOf(first).at(-1)?.["id"]}`)
    expect(last).toMatchObject({ has_more: false, data: lines.data.slice(10) })
  })

  it.effect("have their metadata merged, and what it has become is what later payments get", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const made = yield* tenant.post("/payment-links", {
      line_items: [{ price, quantity: 1 }],
      metadata: { campaign: "summer", channel: "mail", region: "south" }
    })
    const path = `/payment-links/${idOf(made)}`
    const body = { metadata: { campaign: "winter", channel: null, region: "", shop: "north" } }
    const changed = yield* tenant.patch(path, body, "another-season")
    expect(changed.status, changed.text).toBe(200)
    const own = { campaign: "winter", shop: "north" }
    const expected = {
      ...made.json,
      metadata: { ...own, svc_source: "connected-payments" },
      payment_intent_data: { ...part(made.json, "payment_intent_data"), metadata: own }
    }
    expect(changed.json).toEqual(expected)
    expect((yield* tenant.get(path)).json).toEqual(expected)
    expect((yield* tenant.patch(path, body, "another-season")).text).toBe(changed.text)
    expect(yield* tenant.audited).toContain(`payment_link.updated ${idOf(made)}`)

    yield* payThrough(String(made.json["url"]))
    const [paid] = dataOf((yield* tenant.get("/payment-intents")).json)
    expect(paid).toMatchObject({ metadata: own, status: "succeeded" })

    const emptied = yield* tenant.patch(path, { metadata: { campaign: null, shop: null } })
    expect(emptied.json).toMatchObject({ metadata: { svc_source: "connected-payments" } })
    expect(part(emptied.json, "payment_intent_data")["metadata"]).toEqual({})
  })

  it.effect("of recurring prices hand their changed metadata to subscriptions, and keep the trial", function* () {
    const { price, tenant } = yield* newTenantWithPrice(monthly)
    const made = yield* tenant.post("/payment-links", { line_items: [{ price, quantity: 1 }] })
    const changed = yield* tenant.patch(`/payment-links/${idOf(made)}`, { metadata: { campaign: "summer" } })
    expect(changed.json).toMatchObject({
      metadata: { campaign: "summer" },
      subscription_data: { metadata: { campaign: "summer" }, trial_period_days: 14 }
    })
  })

  it.effect("made elsewhere keep what their payments get when their own metadata is changed", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const elsewhere = yield* tenant.doAtProvider("/payment_links", {
      "line_items[0][price]": price,
      "line_items[0][quantity]": "1",
      "payment_intent_data[metadata][ledger]": "7"
    })
    const changed = yield* tenant.patch(`/payment-links/${elsewhere["id"]}`, { metadata: { campaign: "summer" } })
    expect(changed.json).toMatchObject({
      metadata: { campaign: "summer" },
      payment_intent_data: { metadata: { ledger: "7" } }
    })
  })

  it.effect.each([
    ["html_502", 0],
    ["html_502", 1],
    ["lost_answer", 0],
    ["lost_answer", 1]
  ] as const)("whose change meets %s after %i calls are changed as a whole by a repeat", function* ([fault, after]) {
    const { price, tenant } = yield* newTenantWithPrice()
    const id = idOf(yield* tenant.post("/payment-links", { line_items: [{ price, quantity: 1 }] }))
    const change = tenant.patch(`/payment-links/${id}`, { metadata: { campaign: "summer" } }, "cut-off-between")
    const cutOff = yield* tenant.during({ fault, after, method: "POST", path: `/v1/payment_links/${id}` }, change)
    expectFailure(cutOff, { status: 502, code: "provider_unavailable" })
    // The first of the two calls merged the metadata
    const reached = after > 0 || fault === "lost_answer"
    const between = (yield* tenant.get(`/payment-links/${id}`)).json
    expect(part(between, "metadata")["campaign"]).toBe(reached ? "summer" : undefined)
    expect((yield* change).json).toMatchObject({
      metadata: { campaign: "summer" },
      payment_intent_data: { metadata: { campaign: "summer" } }
    })
  })

  it.effect("hand on what several changes at once have made of their metadata", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const id = idOf(yield* tenant.post("/payment-links", { line_items: [{ price, quantity: 1 }] }))
    const keys = ["a", "b", "c", "d"]
    yield* Effect.forEach(keys, (key) => tenant.patch(`/payment-links/${id}`, { metadata: { [key]: "1" } }), {
      concurrency: keys.length
    })
    const link = (yield* tenant.get(`/payment-links/${id}`)).json
    const own = Object.fromEntries(keys.map((key) => [key, "1"]))
    expect(link["metadata"]).toEqual({ ...own, svc_source: "connected-payments" })
    expect(part(link, "payment_intent_data")["metadata"]).toEqual(own)
  })

  it.effect("keep all of their metadata when a change would be more than the provider takes", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const metadata = Object.fromEntries(Array.from({ length: 49 }, (_, n) => [`key${n}`, "1"]))
    const made = yield* tenant.post("/payment-links", { line_items: [{ price, quantity: 1 }], metadata })
    expect(made.status, made.text).toBe(200)
    const path = `/payment-links/${idOf(made)}`
    expectFailure(
      yield* tenant.patch(path, { metadata: { more: "1" } }),
      refusedWith(422, "provider_invalid_request_error", ["metadata"])
    )
    expect((yield* tenant.get(path)).json).toEqual(made.json)
    expect((yield* tenant.patch(path, { metadata: { key0: null, more: "1" } })).status).toBe(200)
  })

  it.effect("of a recurring price need subscriptions:write too, and begin with its trial", function* () {
    const { price, tenant } = yield* newTenantWithPrice(monthly)
    const body = { line_items: [{ price, quantity: 1 }], metadata: { campaign: "summer" } }
    const send = (key: string) =>
      tenant.send("POST", "/payment-links", { key, body, headers: { "idempotency-key": "recurring-link" } })
    const denied = yield* send(yield* tenant.keyOf(["payments:write"]))
    expectFailure(denied, { status: 403, code: "permission_denied", fields: [] })
    expect(denied.json["error"]).toContain("subscriptions:write")
    expect(dataOf(yield* tenant.atProvider("/payment_links"))).toEqual([])
    expect((yield* send(yield* tenant.keyOf(["payments:write", "subscriptions:write"]))).json).toMatchObject({
      subscription_data: { trial_period_days: 14, metadata: { campaign: "summer" } }
    })
  })

  it.effect("of a recurring price are opened only with subscriptions:write, and closed without it", function* () {
    const { price, tenant } = yield* newTenantWithPrice(monthly)
    const id = idOf(yield* tenant.post("/payment-links", { line_items: [{ price, quantity: 1 }] }))
    const key = yield* tenant.keyOf(["payments:write"])
    const change = (body: unknown, by = key) => tenant.send("PATCH", `/payment-links/${id}`, { key: by, body })
    for (const body of [{ active: true }, { metadata: { campaign: "summer" } }, { active: false }]) {
      expect([body, (yield* change(body)).status]).toEqual([body, 200])
    }
    const denied = yield* change({ active: true })
    expectFailure(denied, { status: 403, code: "permission_denied", fields: [] })
    expect(denied.json["error"]).toContain("subscriptions:write")
    expect((yield* tenant.get(`/payment-links/${id}`)).json).toMatchObject({ active: false })
    expect((yield* change({ active: true }, tenant.key)).json).toMatchObject({ active: true })
    const unknown = yield* tenant.send("PATCH", "/payment-links/plink_unknown", { key, body: { active: true } })
    expectFailure(unknown, { status: 404, code: "provider_resource_missing", fields: ["id"] })
  })

  it.effect("are closed and opened again, with or without an idempotency key", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const id = idOf(yield* tenant.post("/payment-links", { line_items: [{ price, quantity: 1 }] }))
    const closed = yield* tenant.send("PATCH", `/payment-links/${id}`, { body: { active: false } })
    expect(closed.json).toMatchObject({ id, active: false })
    expect(dataOf((yield* tenant.get("/payment-links?active=false")).json)).toHaveLength(1)
    expect(dataOf((yield* tenant.get("/payment-links?active=true")).json)).toHaveLength(0)
    expect((yield* tenant.patch(`/payment-links/${id}`, { active: true })).json).toMatchObject({ active: true })
    expect(yield* tenant.audited).toContain(`payment_link.updated ${id}`)
  })

  it.effect("are made once though the answer is lost, with the record of what they sell", function* () {
    const { price, product, tenant } = yield* newTenantWithPrice()
    const create = tenant.post("/payment-links", { line_items: [{ price, quantity: 1 }] }, "lost-link")
    const fault = { fault: "lost_answer", method: "POST", path: "/v1/payment_links" } as const
    expectFailure(yield* tenant.during(fault, create), { status: 502, code: "provider_unavailable" })
    const made = yield* create
    expect(dataOf(yield* tenant.atProvider("/payment_links"))).toHaveLength(1)
    expect(yield* soldItems(tenant, idOf(made))).toEqual({ prices: [price], products: [product] })
    expect((yield* create).text).toBe(made.text)
  })

  it.effect("list in pages, each with its items", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const ids = []
    for (const quantity of [1, 2, 3]) {
      ids.unshift(idOf(yield* tenant.post("/payment-links", { line_items: [{ price, quantity }] })))
    }
    const first = (yield* tenant.get("/payment-links?limit=2")).json
    expect(first).toMatchObject({ has_more: true, data: [{ id: ids[0] }, { id: ids[1] }] })
    expect(part(first, "data", 1, "line_items", "data", 0)).toMatchObject({ quantity: 2, price: { id: price } })
    expect((yield* tenant.get(`/payment-links?starting_after=${ids[1]}`)).json).toMatchObject({
      has_more: false,
      data: [{ id: ids[2] }]
    })
  })

  it.effect("are told apart in the events of their sessions by what they sell, and by their metadata", function* () {
    const { price, product, tenant } = yield* newTenantWithPrice()
    const link = yield* tenant.post("/payment-links", {
      line_items: [{ price, quantity: 2 }],
      metadata: { campaign: "summer" }
    })
    const { makeKey, request } = yield* TestService
    const endpoint = yield* request("POST", `/v2/organizations/${tenant.id}/integrations/endpoints`, {
      key: yield* makeKey(tenant.id, ["webhook-endpoints:write"]),
      headers: { "idempotency-key": "endpoint-of-links" },
      body: {
        name: "Summer",
        url: "https://93.184.215.14/hook",
        events: ["checkout.completed", "payment.succeeded"],
        filters: { metadata: { campaign: "summer" } }
      }
    })
    expect(endpoint.status, endpoint.text).toBe(200)
    yield* payThrough(String(link.json["url"]))
    const payloads = yield* eventually(
      "the delivery of both events",
      Effect.map(
        tenant.sql<{ type: string; payload: string }>`
            SELECT e.type, e.payload FROM payments.deliveries d
            JOIN payments.events e ON e.organization_id = d.organization_id AND e.id = d.event_id
            WHERE d.organization_id = ${tenant.id} ORDER BY e.type`,
        Option.liftPredicate((rows) => rows.length === 2)
      )
    )
    expect(payloads.map(({ type }) => type)).toEqual(["checkout.completed", "payment.succeeded"])
    expect(part(JSON.parse(payloads[0]?.payload ?? "{}"), "data")).toMatchObject({
      payment_status: "paid",
      amount_total: 3000,
      price_ids: [price],
      product_ids: [product]
    })
  })

  const item = { price: "price_123", quantity: 1 }
  it.effect.each([
    ["no items", { line_items: [] }, ["line_items"]],
    ["21 items", { line_items: Array.from({ length: 21 }, () => item) }, ["line_items"]],
    [
      "bounds that cross",
      { line_items: [{ ...item, adjustable_quantity: { enabled: true, minimum: 5, maximum: 4 } }] },
      ["line_items.0.adjustable_quantity.minimum"]
    ],
    [
      "a minimum above the provider's own maximum",
      { line_items: [{ ...item, adjustable_quantity: { enabled: true, minimum: 100 } }] },
      ["line_items.0.adjustable_quantity.minimum"]
    ],
    ["no sales", { restrictions: { completed_sessions: { limit: 0 } } }, ["restrictions.completed_sessions.limit"]],
    ["a long message", { inactive_message: "a".repeat(501) }, ["inactive_message"]],
    [
      "a redirect",
      { after_completion: { type: "redirect", redirect: { url: "https://evil.example" } } },
      ["after_completion.type", "after_completion.redirect"]
    ],
    [
      "a long confirmation",
      { after_completion: { type: "hosted_confirmation", hosted_confirmation: { custom_message: "a".repeat(501) } } },
      ["after_completion.hosted_confirmation.custom_message"]
    ],
    ["a fee", { application_fee_amount: 1, transfer_data: {} }, ["application_fee_amount", "transfer_data"]],
    ["the service's own metadata", { metadata: { svc_source: "mine" } }, ["metadata.svc_source"]],
    ["any key that is the service's", { metadata: { svc_: "mine" } }, ["metadata.svc_"]]
  ] as const)("with %s are refused before the provider is asked", function* ([, change, fields]) {
    const tenant = yield* newTenant
    const body = { line_items: [item], ...change }
    const answer = yield* tenant.during({ fault: "html_502" }, tenant.post("/payment-links", body))
    expectFailure(answer, { status: 422, code: "validation_failed", fields })
  })
})
