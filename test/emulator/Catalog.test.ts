import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, connected, said, somePrice } from "./Harness.ts"

describe("products", () => {
  it.scopedLive("are created with their default price, changed, read and told of", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const product = yield* call(() =>
        stripe.products.create({
          name: "Coffee",
          description: "Beans",
          images: ["https://shop.example/1.png", "https://shop.example/2.png"],
          marketing_features: [{ name: "fresh" }],
          metadata: { a: "1", b: "2", 7: "seven" },
          package_dimensions: { height: 1.5, length: 2, weight: 3, width: 4 },
          shippable: true,
          statement_descriptor: "COFFEE",
          unit_label: "bag",
          url: "https://shop.example/coffee",
          default_price_data: { currency: "USD", unit_amount: 900, recurring: { interval: "month" } }
        })
      )
      expect(product).toMatchObject({
        name: "Coffee",
        active: true,
        livemode: false,
        images: ["https://shop.example/1.png", "https://shop.example/2.png"],
        marketing_features: [{ name: "fresh" }],
        metadata: { a: "1", b: "2", 7: "seven" },
        package_dimensions: { height: 1.5, length: 2, weight: 3, width: 4 },
        shippable: true
      })
      expect(product.id).toMatch(/^prod_[A-Za-z0-9]{14}$/)
      expect(product.default_price).toMatch(/^price_[A-Za-z0-9]{24}$/)

      const changed = yield* call(() =>
        stripe.products.update(product.id, {
          name: "Tea",
          description: "",
          images: "",
          metadata: { a: "", c: "3" },
          active: false
        })
      )
      expect(changed).toMatchObject({
        name: "Tea",
        description: null,
        images: [],
        active: false,
        metadata: { b: "2", c: "3", 7: "seven" },
        shippable: true
      })
      expect(changed.metadata).not.toHaveProperty("a")
      expect((yield* call(() => stripe.products.update(product.id, { metadata: "" }))).metadata).toEqual({})
      expect(yield* call(() => stripe.products.retrieve(product.id))).toMatchObject({ name: "Tea" })

      const events = yield* call(() => stripe.events.list())
      expect(events.data.map(({ type }) => type).reverse()).toEqual([
        "product.created",
        "price.created",
        "product.updated",
        "product.updated"
      ])
      expect(events.data[1]?.data).toMatchObject({
        object: { name: "Tea", description: null },
        previous_attributes: { name: "Coffee", description: "Beans", active: true }
      })
      expect(events.data[3]?.data.object).toMatchObject({ name: "Coffee", default_price: product.default_price })
    })
  )

  it.scopedLive("have 50 keys of metadata at most, those of all changes together", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const keys = (from: number, to: number) =>
        Object.fromEntries(Array.from({ length: to - from }, (_, n) => [`key${from + n}`, "1"]))
      const product = yield* call(() => stripe.products.create({ name: "a", metadata: keys(0, 40) }))
      const price = yield* somePrice(stripe, { metadata: keys(0, 40) })
      for (const path of [`/v1/products/${product.id}`, `/v1/prices/${price.id}`]) {
        const change = (metadata: Record<string, string>) => stripe.rawRequest("POST", path, { metadata })
        const refused = yield* said(() => change(keys(40, 51)))
        expect([path, refused.statusCode, refused.param]).toEqual([path, 400, "metadata"])
        expect(yield* call(() => change(keys(40, 50)))).toMatchObject({ metadata: keys(0, 50) })
      }
    })
  )

  it.scopedLive("take a default price of their own that is active, and no other", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const product = yield* call(() => stripe.products.create({ name: "a" }))
      const own = yield* call(() => stripe.prices.create({ currency: "usd", unit_amount: 1, product: product.id }))
      const foreign = yield* somePrice(stripe)
      const inactive = yield* call(() =>
        stripe.prices.create({ currency: "usd", unit_amount: 1, product: product.id, active: false })
      )
      expect((yield* call(() => stripe.products.update(product.id, { default_price: own.id }))).default_price).toBe(
        own.id
      )
      for (const id of [foreign.id, inactive.id, "price_none"]) {
        expect(yield* said(() => stripe.products.update(product.id, { default_price: id }))).toMatchObject({
          statusCode: 400,
          param: "default_price"
        })
      }
      expect(yield* said(() => stripe.prices.update(own.id, { active: false }))).toMatchObject({
        statusCode: 400,
        param: "active"
      })
      expect((yield* call(() => stripe.products.update(product.id, { default_price: "" }))).default_price).toBeNull()
      expect((yield* call(() => stripe.prices.update(own.id, { active: false }))).active).toBe(false)
    })
  )

  it.scopedLive("are deleted only while they have no price; an id can be chosen once", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const chosen = yield* call(() => stripe.products.create({ id: "my-product", name: "a" }))
      expect(chosen.id).toBe("my-product")
      expect(yield* said(() => stripe.products.create({ id: "my-product", name: "b" }))).toMatchObject({
        statusCode: 400,
        code: "resource_already_exists",
        param: "id"
      })
      expect(yield* call(() => stripe.products.del(chosen.id))).toMatchObject({
        id: chosen.id,
        object: "product",
        deleted: true
      })
      expect(yield* said(() => stripe.products.retrieve(chosen.id))).toMatchObject({ statusCode: 404 })
      expect(yield* said(() => stripe.products.del(chosen.id))).toMatchObject({ statusCode: 404 })
      const price = yield* somePrice(stripe)
      expect(yield* said(() => stripe.products.del(String(price.product)))).toMatchObject({ statusCode: 400 })
    })
  )
})

describe("prices", () => {
  it.scopedLive("keep amounts as integer and as decimal, and say what kind they are", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const whole = yield* somePrice(stripe, {
        unit_amount: 500,
        nickname: "n",
        tax_behavior: "inclusive",
        metadata: { a: "b" }
      })
      expect(whole).toMatchObject({
        type: "one_time",
        billing_scheme: "per_unit",
        unit_amount: 500,
        currency: "brl",
        nickname: "n",
        tax_behavior: "inclusive",
        recurring: null
      })
      expect(String(whole.unit_amount_decimal)).toBe("500")
      const fraction = yield* call(() =>
        stripe.rawRequest("POST", "/v1/prices", {
          currency: "usd",
          unit_amount_decimal: "12.3400",
          product: String(whole.product)
        })
      )
      expect(fraction).toMatchObject({ unit_amount: null, unit_amount_decimal: "12.34" })
      const yearly = yield* somePrice(stripe, {
        recurring: { interval: "year", interval_count: 2, trial_period_days: 7 }
      })
      expect(yearly).toMatchObject({
        type: "recurring",
        recurring: { interval: "year", interval_count: 2, trial_period_days: 7, usage_type: "licensed", meter: null }
      })
      const packed = yield* somePrice(stripe, { transform_quantity: { divide_by: 10, round: "up" } })
      expect(packed.transform_quantity).toEqual({ divide_by: 10, round: "up" })
    })
  )

  it.scopedLive("show their tiers only where that is asked for", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const product = yield* call(() => stripe.products.create({ name: "a" }))
      const params = {
        currency: "usd",
        product: product.id,
        billing_scheme: "tiered",
        tiers_mode: "graduated",
        tiers: [
          { up_to: 10, unit_amount: 100 },
          { up_to: "inf", unit_amount: 50, flat_amount: 5 }
        ]
      } as const
      const price = yield* call(() => stripe.prices.create({ ...params, tiers: [...params.tiers] }))
      expect(price).toMatchObject({ billing_scheme: "tiered", tiers_mode: "graduated", unit_amount: null })
      expect(price.tiers).toBeUndefined()
      const expanded = yield* call(() => stripe.prices.retrieve(price.id, { expand: ["tiers"] }))
      expect(expanded.tiers).toMatchObject([
        { up_to: 10, unit_amount: 100, flat_amount: null },
        { up_to: null, unit_amount: 50, flat_amount: 5 }
      ])
      const [event] = (yield* call(() => stripe.events.list({ type: "price.created" }))).data
      expect(event?.data.object).not.toHaveProperty("tiers")
    })
  )

  it.scopedLive("refuse amounts that contradict each other", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const product = yield* call(() => stripe.products.create({ name: "a" }))
      const refused = (params: object) =>
        Effect.map(
          said(() => stripe.rawRequest("POST", "/v1/prices", { currency: "usd", product: product.id, ...params })),
          ({ code, param, statusCode }) => [statusCode, code, param]
        )
      const tiers = [{ up_to: "inf", unit_amount: 1 }]
      expect(yield* refused({})).toEqual([400, "parameter_missing", "unit_amount"])
      expect(yield* refused({ unit_amount: 1, unit_amount_decimal: "1" })).toEqual([
        400,
        "parameters_exclusive",
        "unit_amount_decimal"
      ])
      expect(yield* refused({ unit_amount: 1, custom_unit_amount: { enabled: true } })).toEqual([
        400,
        "parameters_exclusive",
        "custom_unit_amount"
      ])
      expect(yield* refused({ tiers })).toEqual([400, "parameters_exclusive", "tiers"])
      expect(yield* refused({ tiers, billing_scheme: "tiered" })).toEqual([400, "parameter_missing", "tiers_mode"])
      expect(yield* refused({ unit_amount: 1, billing_scheme: "tiered", tiers_mode: "volume" })).toEqual([
        400,
        "parameter_missing",
        "tiers"
      ])
      expect(yield* refused({ unit_amount: 1, tiers_mode: "volume" })).toEqual([
        400,
        "parameters_exclusive",
        "tiers_mode"
      ])
      const tiered = { billing_scheme: "tiered", tiers_mode: "volume" }
      expect(yield* refused({ ...tiered, tiers: [{ up_to: 5, unit_amount: 1 }] })).toEqual([
        400,
        undefined,
        "tiers[0][up_to]"
      ])
      expect(
        yield* refused({ ...tiered, tiers: [{ up_to: 5, unit_amount: 1 }, { up_to: 5, unit_amount: 1 }, ...tiers] })
      ).toEqual([400, undefined, "tiers[1][up_to]"])
      expect(yield* refused({ ...tiered, tiers: [{ up_to: "inf" }] })).toEqual([400, undefined, "tiers[0]"])
      expect(yield* refused({ ...tiered, tiers, transform_quantity: { divide_by: 2, round: "up" } })).toEqual([
        400,
        "parameters_exclusive",
        "transform_quantity"
      ])
      expect(yield* refused({ custom_unit_amount: { enabled: false } })).toEqual([400, undefined, "custom_unit_amount"])
      expect(yield* refused({ custom_unit_amount: { enabled: true, minimum: 5, maximum: 4 } })).toEqual([
        400,
        undefined,
        "custom_unit_amount"
      ])
      expect(yield* refused({ custom_unit_amount: { enabled: true }, recurring: { interval: "day" } })).toEqual([
        400,
        undefined,
        "custom_unit_amount"
      ])
      expect(yield* refused({ unit_amount: 1, product_data: { name: "b" } })).toEqual([
        400,
        "parameters_exclusive",
        "product_data"
      ])
      expect((yield* call(() => stripe.prices.list())).data).toEqual([])
    })
  )

  it.scopedLive("hold a lookup key alone, and hand it over where that is asked for", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const first = yield* somePrice(stripe, { lookup_key: "standard" })
      const second = yield* somePrice(stripe)
      expect(yield* said(() => stripe.prices.update(second.id, { lookup_key: "standard" }))).toMatchObject({
        statusCode: 400,
        param: "lookup_key"
      })
      expect((yield* call(() => stripe.prices.update(first.id, { lookup_key: "standard" }))).lookup_key).toBe(
        "standard"
      )
      const moved = yield* call(() =>
        stripe.prices.update(second.id, { lookup_key: "standard", transfer_lookup_key: true })
      )
      expect(moved.lookup_key).toBe("standard")
      expect((yield* call(() => stripe.prices.retrieve(first.id))).lookup_key).toBeNull()
      expect((yield* call(() => stripe.prices.list({ lookup_keys: ["standard"] }))).data.map(({ id }) => id)).toEqual([
        second.id
      ])
    })
  )

  it.scopedLive("change their tax behaviour once", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const price = yield* somePrice(stripe)
      expect(
        (yield* call(() => stripe.prices.update(price.id, { tax_behavior: "exclusive", nickname: "x" }))).tax_behavior
      ).toBe("exclusive")
      expect(yield* said(() => stripe.prices.update(price.id, { tax_behavior: "inclusive" }))).toMatchObject({
        statusCode: 400,
        param: "tax_behavior"
      })
      expect(yield* said(() => stripe.rawRequest("POST", `/v1/prices/${price.id}`, { unit_amount: 7 }))).toMatchObject({
        code: "parameter_unknown",
        param: "unit_amount"
      })
      expect(yield* said(() => stripe.prices.update("price_none", { active: true }))).toMatchObject({ statusCode: 404 })
    })
  )
})
