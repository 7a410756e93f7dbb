import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { keysOf } from "../../src/payments/ProviderCall.ts"
import { onSharedService } from "../harness/TestService.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { dataOf, newTenant, newTenantWithProduct, part, type Tenant } from "./ConnectedTenant.ts"

const quarterOff = { code: "SUMMER25", discount: { percent_off: 25 }, duration: "once" }

const counts = (tenant: Tenant) =>
  Effect.gen(function* () {
    return {
      coupons: dataOf(yield* tenant.atProvider("/coupons?limit=100")).length,
      codes: dataOf(yield* tenant.atProvider("/promotion_codes?limit=100")).length
    }
  })

const duplicate = { status: 422, code: "provider_resource_already_exists", fields: ["code"] }

onSharedService("promotion codes", (it) => {
  it.effect("are made with their coupon in one step, which the answer shows", function* () {
    const { product, tenant } = yield* newTenantWithProduct
    const made = yield* tenant.post("/promotion-codes", {
      code: "Beans10",
      discount: { amount_off: 1000, currency: "brl" },
      duration: "repeating",
      duration_in_months: 6,
      max_redemptions: 50,
      expires_at: 4_102_444_800,
      products: [product]
    })
    expect(made.status, made.text).toBe(200)
    const coupon = {
      amount_off: 1000,
      currency: "brl",
      percent_off: null,
      duration: "repeating",
      duration_in_months: 6,
      applies_to: { products: [product] }
    }
    const expected = { code: "Beans10", active: true, max_redemptions: 50, expires_at: 4_102_444_800, coupon }
    expect(made.json).toMatchObject(expected)
    expect((yield* tenant.get(`/promotion-codes/${idOf(made)}`)).json).toMatchObject(expected)
    const list = yield* tenant.get("/promotion-codes")
    expect(list.json).toMatchObject({ has_more: false, data: [{ id: idOf(made), ...expected }] })
    expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 1 })
    expect(yield* tenant.audited).toContain(`promotion_code.created ${idOf(made)}`)
  })

  it.effect("have metadata from the start, which changes merge with and leave the coupon alone", function* () {
    const tenant = yield* newTenant
    const metadata = { campaign: "summer", channel: "mail" }
    const made = yield* tenant.post("/promotion-codes", { ...quarterOff, metadata })
    expect(made.json).toMatchObject({ metadata, coupon: { metadata: {} } })
    const path = `/promotion-codes/${idOf(made)}`
    const changed = yield* tenant.send("PATCH", path, {
      body: { metadata: { campaign: "winter", channel: null, shop: "north" } }
    })
    expect(changed.json).toEqual({ ...made.json, metadata: { campaign: "winter", shop: "north" } })
    expect((yield* tenant.patch(path, { active: false, metadata: { shop: "" } })).json).toEqual({
      ...changed.json,
      active: false,
      metadata: { campaign: "winter" }
    })
  })

  it.effect("list in pages, by whether they are active", function* () {
    const tenant = yield* newTenant
    const ids = []
    for (const code of ["ONE11", "TWO22", "THREE33"]) {
      ids.unshift(idOf(yield* tenant.post("/promotion-codes", { ...quarterOff, code })))
    }
    const first = yield* tenant.get("/promotion-codes?limit=2")
    expect(first.json).toMatchObject({ has_more: true, data: [{ id: ids[0] }, { id: ids[1] }] })
    const second = yield* tenant.get(`/promotion-codes?limit=2&starting_after=${ids[1]}`)
    expect(second.json).toMatchObject({ has_more: false, data: [{ id: ids[2] }] })
    yield* tenant.patch(`/promotion-codes/${ids[1]}`, { active: false })
    expect(dataOf((yield* tenant.get("/promotion-codes?active=false")).json).map(({ id }) => id)).toEqual([ids[1]])
    expect(dataOf((yield* tenant.get("/promotion-codes?active=true")).json)).toHaveLength(2)
  })

  it.effect("are deactivated and activated, with or without an idempotency key", function* () {
    const tenant = yield* newTenant
    const id = idOf(yield* tenant.post("/promotion-codes", quarterOff))
    const off = yield* tenant.send("PATCH", `/promotion-codes/${id}`, { body: { active: false } })
    expect(off.json).toMatchObject({ id, active: false, coupon: { percent_off: 25 } })
    const on = yield* tenant.patch(`/promotion-codes/${id}`, { active: true })
    expect(on.json).toMatchObject({ id, active: true })
    expect((yield* tenant.get(`/promotion-codes/${id}`)).json).toMatchObject({ active: true })
  })

  it.effect("are refused if the code is active already, whatever its case, and leave no coupon behind", function* () {
    const tenant = yield* newTenant
    const id = idOf(yield* tenant.post("/promotion-codes", quarterOff))
    for (const code of ["SUMMER25", "summer25"]) {
      expectFailure(yield* tenant.post("/promotion-codes", { ...quarterOff, code }, "the-duplicate"), duplicate)
      expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 1 })
    }
    yield* tenant.patch(`/promotion-codes/${id}`, { active: false })
    const free = yield* tenant.post("/promotion-codes", quarterOff, "the-duplicate")
    expect(free.status, free.text).toBe(200)
    expect((yield* tenant.patch(`/promotion-codes/${id}`, { active: true })).status).toBe(422)
  })

  it.effect("are refused alike where two callers want the same code at the same time", function* () {
    const tenant = yield* newTenant
    const answers = yield* Effect.all(
      Array.from({ length: 5 }, () => tenant.post("/promotion-codes", quarterOff)),
      { concurrency: "unbounded" }
    )
    const refused = answers.filter(({ status }) => status !== 200)
    expect(refused).toHaveLength(4)
    for (const answer of refused) {
      expectFailure(answer, duplicate)
    }
    expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 1 })
  })

  it.effect("are refused by the provider under the caller's own names, and leave no coupon behind", function* () {
    const { product, tenant } = yield* newTenantWithProduct
    const expired = { ...quarterOff, expires_at: 1_000_000_000 }
    const refusal = { status: 422, code: "provider_invalid_request_error", fields: ["expires_at"] }
    expectFailure(yield* tenant.post("/promotion-codes", expired, "expired-code"), refusal)
    expect(yield* counts(tenant)).toEqual({ coupons: 0, codes: 0 })
    // The provider answers a repeat with the coupon that is deleted by now
    expectFailure(yield* tenant.post("/promotion-codes", expired, "expired-code"), refusal)
    expectFailure(
      yield* tenant.post("/promotion-codes", { ...quarterOff, products: [product, "prod_unknown"] }),
      refusedWith(422, "provider_resource_missing", ["products.1"])
    )
    const odd = { amount_off: 100, currency: "xzq" }
    expectFailure(
      yield* tenant.post("/promotion-codes", { ...quarterOff, discount: odd }),
      refusedWith(422, "provider_invalid_request_error", ["discount.currency"])
    )
    expect(yield* counts(tenant)).toEqual({ coupons: 0, codes: 0 })
  })

  it.effect("are completed by a repeat after the provider failed between coupon and code", function* () {
    const tenant = yield* newTenant
    const create = tenant.post("/promotion-codes", quarterOff, "cut-off-between")
    const fault = { fault: "html_502", method: "POST", path: "/v1/promotion_codes" } as const
    expectFailure(yield* tenant.during(fault, create), { status: 502, code: "provider_unavailable" })
    expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 0 })
    expect((yield* create).json).toMatchObject({ code: "SUMMER25", coupon: { percent_off: 25 } })
    expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 1 })
  })

  it.effect.each(["/v1/coupons", "/v1/promotion_codes"])(
    "are made once though every answer of %s is lost",
    function* (path) {
      const tenant = yield* newTenant
      const products = yield* Effect.forEach(["Tea", "Coffee"], (name) =>
        Effect.map(tenant.post("/products", { name }), idOf)
      )
      const allTerms = {
        ...quarterOff,
        discount: { percent_off: 12.345 },
        duration: "repeating",
        duration_in_months: 3,
        max_redemptions: 7,
        expires_at: 4_102_444_800,
        products
      }
      const create = tenant.post("/promotion-codes", allTerms, "lost-answers")
      const lost = yield* tenant.during({ fault: "lost_answer", method: "POST", path }, create)
      expectFailure(lost, { status: 502, code: "provider_unavailable" })
      const made = yield* create
      expect(made.status, made.text).toBe(200)
      expect(made.json).toMatchObject({ code: "SUMMER25", active: true, max_redemptions: 7 })
      expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 1 })
      expectFailure(yield* tenant.post("/promotion-codes", quarterOff), duplicate)
    }
  )

  it.effect("are answered by their maker's repeat after a crash, though the code is inactive now", function* () {
    const tenant = yield* newTenant
    const create = tenant.post("/promotion-codes", quarterOff, "crashed-after")
    yield* tenant.during({ fault: "lost_answer", method: "POST", path: "/v1/promotion_codes" }, create)
    const [code] = dataOf(yield* tenant.atProvider("/promotion_codes"))
    yield* tenant.doAtProvider(`/promotion_codes/${code?.["id"]}`, { active: "false" })
    expect(idOf(yield* create)).toBe(code?.["id"])
    expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 1 })
  })

  it.effect("that are refused are undone by the repeat where the first undoing failed", function* () {
    const tenant = yield* newTenant
    const create = tenant.post("/promotion-codes", { ...quarterOff, expires_at: 1_000_000_000 }, "undo-failed")
    const undone = yield* tenant.during({ fault: "html_502", method: "DELETE" }, create)
    expectFailure(undone, { status: 502, code: "provider_unavailable" })
    expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 0 })
    expectFailure(yield* create, { status: 422, code: "provider_invalid_request_error", fields: ["expires_at"] })
    expect(yield* counts(tenant)).toEqual({ coupons: 0, codes: 0 })
  })

  it.effect("are made by a repeat though the coupon that was made before was deleted since", function* () {
    const tenant = yield* newTenant
    const create = tenant.post("/promotion-codes", quarterOff, "coupon-is-gone")
    yield* tenant.during({ fault: "html_502", method: "POST", path: "/v1/promotion_codes" }, create)
    const [coupon] = dataOf(yield* tenant.atProvider("/coupons"))
    yield* tenant.doAtProvider(`/coupons/${coupon?.["id"]}`, {}, "DELETE")
    expect((yield* create).json).toMatchObject({ active: true, coupon: { percent_off: 25 } })
    expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 1 })
  })

  it.effect("are made under a key that the provider has forgotten, beside what the key made before", function* () {
    const tenant = yield* newTenant
    const account = { environment: "sandbox", accountId: tenant.accountId } as const
    const keyFor = keysOf(
      { organizationId: tenant.id, environment: "sandbox" },
      "promotion_codes.create",
      "a-month-later"
    )
    const id = `svc_${keyFor(account, "coupon id 0").idempotencyKey.slice(0, 32)}`
    yield* tenant.doAtProvider("/coupons", { id, percent_off: "99" })
    const made = yield* tenant.post("/promotion-codes", quarterOff, "a-month-later")
    expect(made.json).toMatchObject({ code: "SUMMER25", coupon: { percent_off: 25 } })
    expect(part(made.json, "coupon")["id"]).not.toBe(id)
  })

  it.effect.each([
    { discount: { percent_off: 50 } },
    { discount: { amount_off: 500, currency: "brl" } },
    { duration: "forever" },
    { max_redemptions: 5 },
    { expires_at: 4_102_444_800 }
  ])("are not taken for what the same key asks for a month later, with other terms: %j", function* (change) {
    const tenant = yield* newTenant
    const key = "code-of-the-month"
    expect((yield* tenant.post("/promotion-codes", quarterOff, key)).status).toBe(200)
    yield* tenant.sql`
        UPDATE payments.idempotency_keys SET created_at = now() - interval '30 days'
        WHERE organization_id = ${tenant.id} AND environment = 'sandbox' AND key = ${key}`
    expectFailure(yield* tenant.post("/promotion-codes", { ...quarterOff, ...change }, key), duplicate)
    expect(yield* counts(tenant)).toEqual({ coupons: 1, codes: 1 })
  })

  it.effect.each([
    ["neither discount", { discount: {} }, ["discount"]],
    ["both discounts", { discount: { percent_off: 5, amount_off: 5, currency: "brl" } }, ["discount.amount_off"]],
    ["an amount without currency", { discount: { amount_off: 5 } }, ["discount.currency"]],
    ["a percentage with currency", { discount: { percent_off: 5, currency: "brl" } }, ["discount.currency"]],
    ["no percentage", { discount: { percent_off: 0 } }, ["discount.percent_off"]],
    ["more than everything", { discount: { percent_off: 100.5 } }, ["discount.percent_off"]],
    ["no amount", { discount: { amount_off: 0, currency: "brl" } }, ["discount.amount_off"]],
    ["half a cent", { discount: { amount_off: 0.5, currency: "brl" } }, ["discount.amount_off"]],
    ["repeating without months", { duration: "repeating" }, ["duration_in_months"]],
    ["months without repeating", { duration: "forever", duration_in_months: 3 }, ["duration_in_months"]],
    ["an unknown key", { discount: { percent_off: 5, percentage: 5 } }, ["discount.percentage"]]
  ] as const)("with %s are refused before the provider is asked", function* ([, change, fields]) {
    const tenant = yield* newTenant
    const answer = yield* tenant.during(
      { fault: "html_502" },
      tenant.post("/promotion-codes", { ...quarterOff, ...change }, randomUUID())
    )
    expectFailure(answer, { status: 422, code: "validation_failed", fields })
  })
})
