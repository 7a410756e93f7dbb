import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedService } from "../harness/TestService.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { dataOf, newTenant, newTenantWithProduct, part } from "./ConnectedTenant.ts"

const tiers = [
  { up_to: 10, unit_amount: 500, flat_amount: 100 },
  { up_to: 50, flat_amount: 4000 },
  { up_to: "inf", unit_amount: 50 }
]

const refused = (fields: ReadonlyArray<string>) => ({ status: 422, code: "validation_failed", fields })

onSharedService("prices", (it) => {
  it.effect.each([
    ["kwd", { unit_amount: 5001 }, { unit_amount: 5010 }, ["unit_amount"], "end in 0"],
    ["ugx", { unit_amount: 500_001 }, { unit_amount: 500_100 }, ["unit_amount"], "end in 00"],
    [
      "isk",
      { custom_unit_amount: { minimum: 150 } },
      { custom_unit_amount: { minimum: 200 } },
      ["custom_unit_amount.minimum"],
      "end in 00"
    ]
  ] as const)("in %s end in zeros, as the refusal says", function* ([currency, broken, whole, fields, reason]) {
    const { product, tenant } = yield* newTenantWithProduct
    const refusal = yield* tenant.post("/prices", { product, currency, ...broken })
    expectFailure(refusal, { status: 422, code: "provider_invalid_request_error", fields })
    expect(refusal.json["error"]).toContain(reason)
    expect((yield* tenant.post("/prices", { product, currency, ...whole })).status).toBe(200)
    const withProduct = yield* tenant.post("/products", { name: "Tea", default_price_data: { currency, ...broken } })
    expect([withProduct.status, String(withProduct.json["error"]).includes(reason)]).toEqual([422, true])
  })

  it.effect.each([
    ["a fixed amount", { unit_amount: 1500 }, { unit_amount: 1500, type: "one_time" }],
    ["nothing to pay", { unit_amount: 0 }, { unit_amount: 0 }],
    [
      "a recurrence with a trial",
      { unit_amount: 900, recurring: { interval: "week", interval_count: 2, trial_period_days: 14 } },
      { type: "recurring", recurring: { interval: "week", interval_count: 2, trial_period_days: 14 } }
    ],
    [
      "a metered recurrence, which is dropped",
      { unit_amount: 900, recurring: { interval: "month", usage_type: "metered" } },
      { recurring: { interval: "month", usage_type: "licensed" } }
    ],
    [
      "graduated tiers",
      { tiers, tiers_mode: "graduated" },
      {
        billing_scheme: "tiered",
        tiers_mode: "graduated",
        unit_amount: null,
        tiers: [
          { up_to: 10, unit_amount: 500, flat_amount: 100 },
          { up_to: 50, unit_amount: null, flat_amount: 4000 },
          { up_to: null, unit_amount: 50, flat_amount: null }
        ]
      }
    ],
    [
      "volume tiers that recur",
      { tiers, tiers_mode: "volume", recurring: { interval: "month" } },
      { tiers_mode: "volume", billing_scheme: "tiered", type: "recurring" }
    ],
    [
      "an amount that the payer chooses",
      { custom_unit_amount: { minimum: 100, maximum: 900, preset: 500 } },
      { custom_unit_amount: { minimum: 100, maximum: 900, preset: 500 }, unit_amount: null }
    ],
    ["an amount without bounds", { custom_unit_amount: {} }, { unit_amount: null }],
    [
      "an amount that the payer chooses, as the provider says it",
      { custom_unit_amount: { enabled: true, preset: 500 } },
      { custom_unit_amount: { minimum: null, maximum: null, preset: 500 }, unit_amount: null }
    ],
    [
      "what costs more than eight digits",
      { currency: "idr", unit_amount: 150_000_000 },
      { currency: "idr", unit_amount: 150_000_000 }
    ],
    [
      "the most of all",
      { currency: "idr", unit_amount: 999_999_999_999 },
      { currency: "idr", unit_amount: 999_999_999_999 }
    ],
    [
      "an amount per dozen",
      { unit_amount: 3000, transform_quantity: { divide_by: 12, round: "up" } },
      { unit_amount: 3000, transform_quantity: { divide_by: 12, round: "up" } }
    ],
    [
      "a name, a lookup key and tax",
      { unit_amount: 1, nickname: "Basic", lookup_key: "basic", tax_behavior: "exclusive", metadata: { plan: "b" } },
      { nickname: "Basic", lookup_key: "basic", tax_behavior: "exclusive", metadata: { plan: "b" } }
    ]
  ] as const)("are made with %s", function* ([, body, expected]) {
    const { product, tenant } = yield* newTenantWithProduct
    const made = yield* tenant.post("/prices", { product, currency: "brl", ...body })
    expect(made.status, made.text).toBe(200)
    expect(made.json).toMatchObject({ product, currency: "brl", ...expected })
    expect((yield* tenant.get(`/prices/${idOf(made)}`)).json).toMatchObject(expected)
    expect(yield* tenant.audited).toContain(`price.created ${idOf(made)}`)
  })

  it.effect("are made with a product of their own", function* () {
    const tenant = yield* newTenant
    const product_data = {
      name: "Tea",
      active: true,
      statement_descriptor: "TEA SHOP",
      unit_label: "bag",
      metadata: { sku: "T" }
    }
    const made = yield* tenant.post("/prices", { currency: "brl", unit_amount: 500, product_data })
    expect(made.status, made.text).toBe(200)
    expect((yield* tenant.get(`/products/${made.json["product"]}`)).json).toMatchObject(product_data)
  })

  it.effect("are renamed, given other metadata, and taken out of sale and back, with or without a key", function* () {
    const tenant = yield* newTenant
    const made = yield* tenant.post("/prices", {
      product: idOf(yield* tenant.post("/products", { name: "Coffee" })),
      currency: "brl",
      tiers,
      tiers_mode: "volume",
      lookup_key: "basic",
      metadata: { plan: "b", row: "7" }
    })
    const id = idOf(made)
    const ended = yield* tenant.send("PATCH", `/prices/${id}`, {
      body: { active: false, nickname: "Basic", metadata: { row: null, shelf: "3" } }
    })
    expect(ended.status, ended.text).toBe(200)
    expect(ended.json).toEqual({
      ...made.json,
      active: false,
      nickname: "Basic",
      metadata: { plan: "b", shelf: "3" }
    })
    const back = yield* tenant.patch(`/prices/${id}`, { active: true }, "back-in-sale")
    expect(back.json).toMatchObject({ active: true, nickname: "Basic", lookup_key: "basic" })
    const again = yield* tenant.patch(`/prices/${id}`, { active: true }, "back-in-sale")
    expect([again.text, again.headers.get("idempotent-replayed")]).toEqual([back.text, "true"])
    expect((yield* tenant.get(`/prices/${id}`)).json).toEqual(back.json)
    const emptied = yield* tenant.patch(`/prices/${id}`, { nickname: null, lookup_key: null })
    expect([emptied.status, emptied.json]).toEqual([200, { ...back.json, nickname: null, lookup_key: null }])
    expect(dataOf((yield* tenant.get("/prices?lookup_keys=basic")).json)).toEqual([])
    const kept = yield* tenant.patch(`/prices/${id}`, { nickname: "Again" })
    expect(kept.json).toMatchObject({ nickname: "Again", lookup_key: null })
    expect((yield* tenant.audited).filter((record) => record === `price.updated ${id}`)).toHaveLength(4)
  })

  it.effect("that are a product's default stay in sale", function* () {
    const tenant = yield* newTenant
    const product = yield* tenant.post("/products", {
      name: "Coffee",
      default_price_data: { currency: "brl", unit_amount: 500 }
    })
    const price = part(product.json, "default_price")["id"]
    expectFailure(
      yield* tenant.patch(`/prices/${price}`, { active: false }),
      refusedWith(422, "provider_invalid_request_error", ["active"])
    )
  })

  it.effect("have a lookup key that no other one has, until it is transferred", function* () {
    const tenant = yield* newTenant
    const base = { product: idOf(yield* tenant.post("/products", { name: "Coffee" })), currency: "brl" }
    const keyOf = (id: string) => Effect.map(tenant.get(`/prices/${id}`), ({ json }) => json["lookup_key"])
    const taken = { status: 422, code: "provider_resource_already_exists", fields: ["lookup_key"] }
    const old = idOf(yield* tenant.post("/prices", { ...base, unit_amount: 500, lookup_key: "coffee" }))
    // What an integrator does to change what something costs
    const body = { ...base, unit_amount: 600, lookup_key: "coffee" }
    expectFailure(yield* tenant.post("/prices", body), taken)
    const dearer = idOf(yield* tenant.post("/prices", { ...body, transfer_lookup_key: true }))
    expect([yield* keyOf(old), yield* keyOf(dearer)]).toEqual([null, "coffee"])
    expectFailure(yield* tenant.patch(`/prices/${old}`, { lookup_key: "coffee", transfer_lookup_key: false }), taken)
    expect([yield* keyOf(old), yield* keyOf(dearer)]).toEqual([null, "coffee"])
    const moved = yield* tenant.patch(`/prices/${old}`, { lookup_key: "coffee", transfer_lookup_key: true })
    expect(moved.json).toMatchObject({ id: old, lookup_key: "coffee" })
    expect([yield* keyOf(old), yield* keyOf(dearer)]).toEqual(["coffee", null])
  })

  it.effect("list by their lookup keys, up to ten of them, with their tiers", function* () {
    const tenant = yield* newTenant
    const base = { product: idOf(yield* tenant.post("/products", { name: "Coffee" })), currency: "brl" }
    const keys = ["small, 250 g", "medium", "größe/XL?&="]
    const ids = yield* Effect.forEach(keys, (lookup_key) =>
      Effect.map(tenant.post("/prices", { ...base, tiers, tiers_mode: "volume", lookup_key }), idOf)
    )
    const listed = (wanted: ReadonlyArray<string>, more = "") =>
      tenant.get(`/prices?${new URLSearchParams(wanted.map((key): [string, string] => ["lookup_keys", key]))}${more}`)
    const idsOf = (...query: Parameters<typeof listed>) =>
      Effect.map(listed(...query), ({ json }) => dataOf(json).map(({ id }) => id))
    for (const [index, key] of keys.entries()) expect(yield* idsOf([key])).toEqual([ids[index]])
    expect(yield* idsOf([...keys.slice(1), "none"])).toEqual([ids[2], ids[1]])
    expect(yield* idsOf(["none"])).toEqual([])
    expect(yield* idsOf(keys, `&active=true&product=${base.product}&limit=1`)).toEqual([ids[2]])
    expect(yield* idsOf(keys, "&active=false")).toEqual([])
    expect(dataOf((yield* listed(keys)).json)[0]).toEqual((yield* tenant.get(`/prices/${ids[2]}`)).json)
    const many = Array.from({ length: 10 }, (_, n) => `key-${n}`)
    expect((yield* listed(many)).status).toBe(200)
    expectFailure(yield* listed([...many, "one more"]), refused(["lookup_keys"]))
    expectFailure(yield* listed(["a", "b".repeat(201)]), refused(["lookup_keys", "lookup_keys.1"]))
  })

  it.effect("list in pages, by product and by whether they are active", function* () {
    const { product: coffee, tenant } = yield* newTenantWithProduct
    const tea = idOf(yield* tenant.post("/products", { name: "Tea" }))
    const ids = []
    for (const product of [coffee, tea, coffee]) {
      ids.unshift(idOf(yield* tenant.post("/prices", { product, currency: "brl", unit_amount: 500 })))
    }
    const idsOf = (query: string) =>
      Effect.map(tenant.get(`/prices?${query}`), ({ json }) => dataOf(json).map(({ id }) => id))
    expect(yield* idsOf(`product=${coffee}`)).toEqual([ids[0], ids[2]])
    expect(yield* idsOf(`limit=2&starting_after=${ids[0]}`)).toEqual([ids[1], ids[2]])
    yield* tenant.doAtProvider(`/prices/${ids[1]}`, { active: "false" })
    expect(yield* idsOf("active=false")).toEqual([ids[1]])
    expect(yield* idsOf("active=true")).toEqual([ids[0], ids[2]])
  })

  const last = { up_to: "inf", unit_amount: 5 }
  it.effect.each([
    ["neither product nor product_data", { product: undefined }, ["product"]],
    ["both product and product_data", { product_data: { name: "Tea" } }, ["product_data"]],
    ["no amount", { unit_amount: undefined }, ["unit_amount"]],
    ["a fixed and a chosen amount", { custom_unit_amount: {} }, ["unit_amount", "custom_unit_amount"]],
    ["tiers beside an amount", { tiers: [last], tiers_mode: "volume" }, ["unit_amount", "tiers"]],
    ["tiers without mode", { unit_amount: undefined, tiers: [last] }, ["tiers_mode"]],
    ["a mode without tiers", { tiers_mode: "volume" }, ["tiers_mode"]],
    [
      "a divided quantity without amount",
      { unit_amount: undefined, transform_quantity: { divide_by: 2, round: "up" } },
      ["unit_amount"]
    ],
    [
      "a divided quantity of tiers",
      {
        unit_amount: undefined,
        tiers: [last],
        tiers_mode: "volume",
        transform_quantity: { divide_by: 2, round: "up" }
      },
      ["transform_quantity"]
    ],
    [
      "a chosen amount that recurs",
      { unit_amount: undefined, custom_unit_amount: {}, recurring: { interval: "month" } },
      ["custom_unit_amount"]
    ],
    ["no tiers", { tiers: [] }, ["tiers"]],
    [
      "26 tiers",
      { tiers: [...Array.from({ length: 25 }, (_, n) => ({ up_to: n + 1, unit_amount: 5 })), last] },
      ["tiers"]
    ],
    ["an end below infinity", { tiers: [{ up_to: 5, unit_amount: 5 }] }, ["tiers.0.up_to"]],
    ["infinity before the end", { tiers: [last, last] }, ["tiers.0.up_to"]],
    [
      "tiers that do not rise",
      { tiers: [{ up_to: 5, unit_amount: 5 }, { up_to: 5, unit_amount: 4 }, last] },
      ["tiers.0.up_to"]
    ],
    ["a tier without amount", { tiers: [{ up_to: "inf" }] }, ["tiers.0.unit_amount"]],
    ["a tier up to nothing", { tiers: [{ up_to: 0, unit_amount: 5 }, last] }, ["tiers.0.up_to"]],
    ["a tier up to a word", { tiers: [{ up_to: "many", unit_amount: 5 }] }, ["tiers.0.up_to"]],
    ["a tier's unknown key", { tiers: [{ ...last, amount: 5 }] }, ["tiers.0.amount"]],
    ["a minimum above the maximum", { custom_unit_amount: { minimum: 5, maximum: 4 } }, ["custom_unit_amount.maximum"]],
    ["a choice that is none", { custom_unit_amount: { enabled: false } }, ["custom_unit_amount.enabled"]],
    ["more than twelve digits", { currency: "idr", unit_amount: 1_000_000_000_000 }, ["unit_amount"]],
    ["a preset below", { custom_unit_amount: { minimum: 5, preset: 4 } }, ["custom_unit_amount.preset"]],
    ["a preset above", { custom_unit_amount: { maximum: 5, preset: 6 } }, ["custom_unit_amount.preset"]],
    ["a division by nothing", { transform_quantity: { divide_by: 0, round: "up" } }, ["transform_quantity.divide_by"]],
    ["odd rounding", { transform_quantity: { divide_by: 2, round: "even" } }, ["transform_quantity.round"]],
    ["no trial days", { recurring: { interval: "month", trial_period_days: 0 } }, ["recurring.trial_period_days"]],
    ["a long trial", { recurring: { interval: "month", trial_period_days: 731 } }, ["recurring.trial_period_days"]],
    ["37 months", { recurring: { interval: "month", interval_count: 37 } }, ["recurring.interval_count"]],
    ["157 weeks", { recurring: { interval: "week", interval_count: 157 } }, ["recurring.interval_count"]],
    ["a meter", { recurring: { interval: "month", meter: "m_1" } }, ["recurring.meter"]],
    ["a nameless product", { product_data: {} }, ["product_data.name"]],
    ["another billing scheme", { billing_scheme: "tiered" }, ["billing_scheme"]]
  ] as const)("refuse %s before the provider is asked", function* ([, change, fields]) {
    const tenant = yield* newTenant
    const body = { product: "prod_123", currency: "brl", unit_amount: 500, ...change }
    expectFailure(yield* tenant.during({ fault: "html_502" }, tenant.post("/prices", body)), refused(fields))
  })

  it.effect("take 25 tiers and three years", function* () {
    const { product, tenant } = yield* newTenantWithProduct
    const many = [...Array.from({ length: 24 }, (_, n) => ({ up_to: n + 1, unit_amount: 5 })), last]
    for (const [interval, interval_count] of Object.entries({ day: 1_095, week: 156, month: 36, year: 3 })) {
      const made = yield* tenant.post("/prices", {
        product,
        currency: "brl",
        tiers: many,
        tiers_mode: "volume",
        recurring: { interval, interval_count, trial_period_days: 730 }
      })
      expect(made.status, made.text).toBe(200)
      expect(dataOf({ data: made.json["tiers"] })).toHaveLength(25)
    }
  })
})
