import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedService } from "../harness/TestService.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { dataOf, newTenant, newTenantWithProduct, part, type Tenant } from "./ConnectedTenant.ts"

const pricesOf = (tenant: Tenant) =>
  Effect.map(tenant.atProvider("/prices?limit=100"), (list) =>
    dataOf(list)
      .map(({ active, id, unit_amount }) => ({ active, id, unit_amount }))
      .toReversed()
  )

const newPrice = { default_price_data: { currency: "brl", unit_amount: 2000 } }

onSharedService("products", (it) => {
  it.effect("are made with their default price, which the answer shows", function* () {
    const tenant = yield* newTenant
    const product = {
      name: "Coffee",
      description: "Beans from the hills.\nRoasted every Monday.",
      images: ["https://shop.example/coffee.png"],
      url: "https://shop.example/coffee",
      statement_descriptor: "COFFEE SHOP",
      unit_label: "bag",
      marketing_features: [{ name: "Freshly roasted" }],
      shippable: true,
      metadata: { sku: "C-1" }
    }
    const price = (usage_type: string) => ({
      currency: "brl",
      unit_amount: 1500,
      recurring: { interval: "month", interval_count: 2, usage_type },
      tax_behavior: "inclusive",
      metadata: { tier: "basic" }
    })
    const made = yield* tenant.post("/products", { ...product, default_price_data: price("metered") })
    expect(made.status, made.text).toBe(200)
    const expected = { ...product, active: true, default_price: price("licensed") }
    expect(made.json).toMatchObject(expected)
    expect((yield* tenant.get(`/products/${idOf(made)}`)).json).toMatchObject(expected)
  })

  it.effect("may leave the amount of their default price to the payer", function* () {
    const made = yield* (yield* newTenant).post("/products", {
      name: "Donation",
      default_price_data: { currency: "brl", custom_unit_amount: { minimum: 500, maximum: 50_000, preset: 1000 } }
    })
    expect(made.json).toMatchObject({
      default_price: { unit_amount: null, custom_unit_amount: { minimum: 500, maximum: 50_000, preset: 1000 } }
    })
  })

  it.effect("are changed where a change names a field, emptied where it is empty, and keep the rest", function* () {
    const tenant = yield* newTenant
    const id = idOf(
      yield* tenant.post("/products", {
        name: "Coffee",
        images: ["https://shop.example/coffee.png"],
        marketing_features: [{ name: "Fresh" }],
        unit_label: "bag",
        url: "https://shop.example/coffee",
        description: "Beans",
        metadata: { sku: "C-1", shelf: "3", row: "7" }
      })
    )
    const renamed = yield* tenant.send("PATCH", `/products/${id}`, {
      body: { name: "Tea", description: "Leaves", active: false, metadata: { shelf: "", row: null } }
    })
    expect(renamed.json).toMatchObject({ name: "Tea", description: "Leaves", active: false, unit_label: "bag" })
    expect(part(renamed.json, "metadata")).toEqual({ sku: "C-1" })
    const emptied = yield* tenant.patch(`/products/${id}`, {
      images: [],
      marketing_features: [],
      unit_label: "",
      url: "",
      description: ""
    })
    expect(emptied.status, emptied.text).toBe(200)
    expect(emptied.json).toMatchObject({
      name: "Tea",
      images: [],
      marketing_features: [],
      unit_label: null,
      url: null,
      description: null
    })
    expect(yield* tenant.audited).toContain(`product.updated ${id}`)
  })

  it.effect("have their default price as the same object wherever they are answered", function* () {
    const tenant = yield* newTenant
    const made = yield* tenant.post("/products", { name: "Coffee", ...newPrice })
    const id = idOf(made)
    const price = made.json["default_price"]
    expect(price).toMatchObject({ object: "price", unit_amount: 2000 })
    const renamed = yield* tenant.patch(`/products/${id}`, { name: "Tea" })
    const illustrated = yield* tenant.patch(`/products/${id}`, { images: ["https://shop.example/tea.png"] })
    const listed = dataOf((yield* tenant.get("/products")).json)
    const read = yield* tenant.get(`/products/${id}`)
    for (const product of [renamed.json, illustrated.json, ...listed, read.json]) {
      expect(product["default_price"]).toEqual(price)
    }
    expect(listed).toHaveLength(1)
    expect((yield* tenant.post("/products", { name: "Milk" })).json["default_price"]).toBeNull()
    expect(dataOf((yield* tenant.get("/products")).json)[0]).toMatchObject({ default_price: null })
  })

  it.effect("take another of their prices for the default one", function* () {
    const tenant = yield* newTenant
    const id = idOf(yield* tenant.post("/products", { name: "Coffee", ...newPrice }))
    const price = idOf(yield* tenant.post("/prices", { product: id, currency: "brl", unit_amount: 900 }))
    const changed = yield* tenant.patch(`/products/${id}`, { default_price: price })
    expect(changed.json).toMatchObject({ default_price: { id: price, unit_amount: 900 } })
    const foreign = idOf(
      yield* tenant.post("/prices", { product_data: { name: "Tea" }, currency: "brl", unit_amount: 900 })
    )
    const inactive = idOf(yield* tenant.post("/prices", { product: id, currency: "brl", unit_amount: 800 }))
    yield* tenant.patch(`/prices/${inactive}`, { active: false })
    for (const [default_price, code] of [
      ["price_unknown", "provider_resource_missing"],
      [foreign, "provider_invalid_request_error"],
      [inactive, "provider_invalid_request_error"]
    ] as const) {
      expectFailure(yield* tenant.patch(`/products/${id}`, { default_price }), {
        status: 422,
        code,
        fields: ["default_price"]
      })
    }
  })

  it.effect("have their default price replaced with the other changes; the former stays in sale", function* () {
    const tenant = yield* newTenant
    const made = yield* tenant.post("/products", {
      name: "Coffee",
      default_price_data: { currency: "brl", unit_amount: 1500 }
    })
    const changed = yield* tenant.patch(`/products/${idOf(made)}`, { ...newPrice, name: "Tea" })
    expect(changed.json).toMatchObject({ name: "Tea", default_price: { unit_amount: 2000, currency: "brl" } })
    expect(yield* pricesOf(tenant)).toMatchObject([
      { active: true, unit_amount: 1500 },
      { active: true, unit_amount: 2000 }
    ])
  })

  it.effect("need an idempotency key for a new default price, and for nothing else", function* () {
    const { product: id, tenant } = yield* newTenantWithProduct
    expectFailure(
      yield* tenant.send("PATCH", `/products/${id}`, { body: newPrice }),
      refusedWith(422, "validation_failed", ["idempotency-key"])
    )
    expect(yield* pricesOf(tenant)).toEqual([])
    expect((yield* tenant.send("PATCH", `/products/${id}`, { body: { name: "Tea" } })).status).toBe(200)
  })

  it.effect.each([
    ["html_502", "/v1/prices"],
    ["html_502", "/v1/products/*"],
    ["lost_answer", "/v1/prices"],
    ["lost_answer", "/v1/products/*"]
  ] as const)("have one new default price after %s on %s and a repeat", function* ([fault, path]) {
    const { product: id, tenant } = yield* newTenantWithProduct
    const replace = tenant.patch(`/products/${id}`, newPrice, "cut-off-between")
    const cutOff = yield* tenant.during({ fault, method: "POST", path }, replace)
    expectFailure(cutOff, { status: 502, code: "provider_unavailable" })
    const replaced = yield* replace
    expect(replaced.json).toMatchObject({ default_price: { unit_amount: 2000, active: true } })
    expect(yield* pricesOf(tenant)).toEqual([
      { active: true, id: part(replaced.json, "default_price")["id"], unit_amount: 2000 }
    ])
  })

  it.effect("that do not exist have no price made for them", function* () {
    const tenant = yield* newTenant
    for (const change of [{ name: "Tea" }, newPrice]) {
      expectFailure(
        yield* tenant.patch("/products/prod_unknown", change),
        refusedWith(404, "provider_resource_missing", ["id"])
      )
    }
    expect(yield* pricesOf(tenant)).toEqual([])
  })

  it.effect("have refusals of their new price named after the caller's field", function* () {
    const { product: id, tenant } = yield* newTenantWithProduct
    const unknownCurrency = { default_price_data: { currency: "xzq", unit_amount: 5 } }
    const refusal = { status: 422, code: "provider_invalid_request_error", fields: ["default_price_data.currency"] }
    expectFailure(yield* tenant.patch(`/products/${id}`, unknownCurrency), refusal)
    expectFailure(yield* tenant.post("/products", { name: "Tea", ...unknownCurrency }), refusal)
  })

  it.effect.each([
    ["both ways of a default price", { default_price: "price_123", ...newPrice }, ["default_price_data"]],
    ["a price without amount", { default_price_data: { currency: "brl" } }, ["default_price_data.unit_amount"]],
    [
      "two amounts",
      { default_price_data: { currency: "brl", unit_amount: 1, custom_unit_amount: {} } },
      ["default_price_data.unit_amount", "default_price_data.custom_unit_amount"]
    ],
    [
      "a choice that is none",
      { default_price_data: { currency: "brl", custom_unit_amount: { enabled: false } } },
      ["default_price_data.custom_unit_amount.enabled"]
    ],
    [
      "a preset out of bounds",
      { default_price_data: { currency: "brl", custom_unit_amount: { minimum: 5, preset: 4 } } },
      ["default_price_data.custom_unit_amount.preset"]
    ],
    [
      "a recurring amount of the payer's",
      { default_price_data: { currency: "brl", custom_unit_amount: {}, recurring: { interval: "month" } } },
      ["default_price_data.custom_unit_amount"]
    ],
    [
      "more than three years",
      { default_price_data: { currency: "brl", unit_amount: 1, recurring: { interval: "year", interval_count: 4 } } },
      ["default_price_data.recurring.interval_count"]
    ],
    ["tiers", { default_price_data: { currency: "brl", unit_amount: 1, tiers: [] } }, ["default_price_data.tiers"]],
    ["an unknown key", { colour: "brown" }, ["colour"]]
  ] as const)("refuse %s before the provider is asked", function* ([, change, fields]) {
    const tenant = yield* newTenant
    const answer = yield* tenant.during({ fault: "html_502" }, tenant.patch("/products/prod_123", change))
    expectFailure(answer, { status: 422, code: "validation_failed", fields })
  })
})
