import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Stripe } from "stripe"
import { apiVersion } from "../../src/emulator/Versions.ts"
import {
  call,
  connected,
  raw,
  refusal,
  said,
  sdk,
  secretKey,
  somePrice,
  someSession,
  startEmulator,
  submit
} from "./Harness.ts"

describe("access", () => {
  it.scopedLive("accepts the platform's key as Bearer and as Basic, and no other", () =>
    Effect.gen(function* () {
      const { emulator } = yield* connected()
      const basic = `Basic ${Buffer.from(`${secretKey}:`).toString("base64")}`
      expect((yield* raw(emulator.url, "/v1/account", { headers: { authorization: basic } })).status).toBe(200)
      for (const authorization of ["", "Bearer", "Bearer sk_test_other", `Token ${secretKey}`, "Basic !!!"]) {
        const answer = yield* raw(emulator.url, "/v1/account", { headers: { authorization } })
        expect([authorization, answer.status]).toEqual([authorization, 401])
        expect(JSON.parse(answer.text)).toMatchObject({ error: { type: "invalid_request_error" } })
      }
      const error = yield* refusal(() => sdk(emulator.url, undefined, "sk_test_wrong").products.list())
      expect(error).toBeInstanceOf(Stripe.errors.StripeAuthenticationError)
      expect(error.message).not.toContain("sk_test_wrong")
    })
  )

  it.scopedLive("keeps each account's objects to itself", () =>
    Effect.gen(function* () {
      const { account, emulator, stripe } = yield* connected()
      const product = yield* call(() => stripe.products.create({ name: "Mine" }))
      const other = sdk(emulator.url, yield* emulator.ensureAccount())
      const missing = { statusCode: 404, code: "resource_missing", param: "id", rawType: "invalid_request_error" }
      expect(yield* said(() => other.products.retrieve(product.id))).toEqual(missing)
      expect(yield* said(() => sdk(emulator.url).products.retrieve(product.id))).toEqual(missing)
      expect((yield* call(() => other.products.list())).data).toEqual([])
      expect(
        yield* said(() => other.prices.create({ currency: "usd", unit_amount: 1, product: product.id }))
      ).toMatchObject({
        statusCode: 400,
        code: "resource_missing",
        param: "product"
      })
      expect((yield* call(() => stripe.accounts.retrieve(account))).id).toBe(account)
    })
  )

  it.scopedLive("names an unknown id in the URL as the provider does, each kind by its own parameter", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      for (const [param, request] of [
        ["id", () => stripe.products.retrieve("x")],
        ["id", () => stripe.products.update("x", { name: "a" })],
        ["price", () => stripe.prices.retrieve("x")],
        ["session", () => stripe.checkout.sessions.retrieve("x")],
        ["session", () => stripe.checkout.sessions.listLineItems("x")],
        ["coupon", () => stripe.coupons.del("x")],
        ["promotion_code", () => stripe.promotionCodes.update("x", { active: false })],
        ["payment_link", () => stripe.paymentLinks.retrieve("x")],
        ["intent", () => stripe.paymentIntents.retrieve("x")],
        ["charge", () => stripe.charges.retrieve("x")],
        ["payout", () => stripe.payouts.retrieve("x")],
        ["id", () => stripe.subscriptions.retrieve("x")],
        ["id", () => stripe.subscriptions.cancel("x")],
        ["id", () => stripe.customers.retrieve("x")],
        ["invoice", () => stripe.invoices.retrieve("x")]
      ] as const) {
        expect(yield* said(request)).toEqual({
          statusCode: 404,
          code: "resource_missing",
          param,
          rawType: "invalid_request_error"
        })
      }
    })
  )

  it.scopedLive("answers 403 account_invalid for an account that is not connected", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      const unknown = "acct_0000000000000000"
      const error = yield* refusal(() => sdk(emulator.url, unknown).products.list())
      expect(error).toBeInstanceOf(Stripe.errors.StripePermissionError)
      expect(error).toMatchObject({ statusCode: 403, code: "account_invalid" })
      expect(error.message).not.toContain(secretKey)
      expect(yield* said(() => sdk(emulator.url).accounts.retrieve(unknown))).toMatchObject({
        statusCode: 403,
        code: "account_invalid"
      })
      const other = yield* emulator.ensureAccount()
      expect(yield* said(() => stripe.accounts.retrieve(other))).toMatchObject({ statusCode: 403 })
    })
  )

  it.scopedLive("makes an account once, and lists the connected ones without the platform's own", () =>
    Effect.gen(function* () {
      const emulator = yield* startEmulator()
      const id = "acct_1A2b3C4d5E6f7G8h"
      expect(yield* emulator.ensureAccount(id)).toBe(id)
      expect(yield* emulator.ensureAccount(id)).toBe(id)
      const stripe = sdk(emulator.url)
      const made = yield* call(() =>
        stripe.accounts.create({ type: "express", country: "BR", email: "a@b.example", metadata: { a: "1" } })
      )
      expect(made).toMatchObject({
        type: "express",
        country: "BR",
        email: "a@b.example",
        metadata: { a: "1" },
        // Its owner has to complete it first
        charges_enabled: false,
        details_submitted: false
      })
      expect(made.id).toMatch(/^acct_[A-Za-z0-9]{16}$/)
      expect((yield* call(() => stripe.accounts.list())).data.map((account) => account.id)).toEqual([made.id, id])
      const own = yield* call(() => stripe.accounts.retrieveCurrent())
      expect([id, made.id]).not.toContain(own.id)
      expect((yield* call(() => sdk(emulator.url, id).accounts.retrieveCurrent())).id).toBe(id)
    })
  )
})

describe("every answer", () => {
  it.scopedLive("carries a request id of its own and the API version of the installed SDK", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      expect(apiVersion).toBe(Stripe.API_VERSION)
      const ids = new Set<string>()
      for (const path of ["/v1/account", "/v1/nothing", "/c/pay/x", "/elsewhere", "/v1/products/%zz"]) {
        const { headers } = yield* raw(emulator.url, path)
        expect(headers.get("request-id")).toMatch(/^req_[A-Za-z0-9]{14}$/)
        expect(headers.get("stripe-version")).toBe(apiVersion)
        ids.add(headers.get("request-id") ?? "")
      }
      expect(ids.size).toBe(5)
      const product = yield* call(() => stripe.products.create({ name: "x" }))
      expect(product.lastResponse).toMatchObject({ statusCode: 200, apiVersion })
      expect(JSON.parse((yield* raw(emulator.url, "/v1/account?colour=red")).text).error).toMatchObject({
        code: "parameter_unknown",
        param: "colour"
      })
      expect((yield* raw(emulator.url, "/v1/account", { headers: { "stripe-version": "2020-01-01" } })).status).toBe(
        400
      )
    })
  )

  it.scopedLive("is an error in the provider's form for a URL or a method that is unknown", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      for (const [method, path] of [
        ["GET", "/v1/nothing"],
        ["DELETE", "/v1/products"],
        ["PUT", "/v1/products"],
        ["GET", "/v2/core/events"],
        ["GET", "/"],
        ["POST", "/_emulator/nothing"],
        ["GET", "/v1/products/"]
      ] as const) {
        const answer = yield* raw(emulator.url, path, { method })
        expect([path, answer.status]).toEqual([path, 404])
        expect(JSON.parse(answer.text).error.type).toBe("invalid_request_error")
      }
      expect(yield* said(() => stripe.customers.create({ email: "a@b.example" }))).toMatchObject({ statusCode: 404 })
    })
  )
})

describe("parameters", () => {
  it.scopedLive("are refused by name where they are unknown, missing or of the wrong type", () =>
    Effect.gen(function* () {
      const { account, emulator } = yield* connected()
      const post = (path: string, body: string) =>
        Effect.map(
          raw(emulator.url, path, {
            method: "POST",
            headers: { "stripe-account": account, "content-type": "application/x-www-form-urlencoded" },
            body
          }),
          ({ status, text }) => [status, JSON.parse(text).error?.code, JSON.parse(text).error?.param]
        )
      expect(yield* post("/v1/products", "name=a&colour=red")).toEqual([400, "parameter_unknown", "colour"])
      expect(yield* post("/v1/products", "")).toEqual([400, "parameter_missing", "name"])
      expect(yield* post("/v1/products", "name=")).toEqual([400, "parameter_invalid_empty", "name"])
      expect(yield* post("/v1/products", "name=a&name=b")).toEqual([400, undefined, "name"])
      expect(yield* post("/v1/products", "name[a]=b")).toEqual([400, undefined, "name"])
      expect(yield* post("/v1/products", "name=a&active=yes")).toEqual([400, undefined, "active"])
      expect(yield* post("/v1/products", "name=a&url=ftp://x")).toEqual([400, "url_invalid", "url"])
      expect(yield* post("/v1/products", "name=a&images[0]=nonsense")).toEqual([400, "url_invalid", "images[0]"])
      expect(
        yield* post(
          "/v1/products",
          `name=a&${Array.from({ length: 9 }, (_, i) => `images[]=https://a.example/${i}`).join("&")}`
        )
      ).toEqual([400, undefined, "images"])
      expect(yield* post("/v1/products", "name=a&package_dimensions[height]=1")).toEqual([
        400,
        "parameter_missing",
        "package_dimensions[length]"
      ])
      expect(yield* post("/v1/products", "name=a&package_dimensions=1")).toEqual([400, undefined, "package_dimensions"])
      expect(yield* post("/v1/products", `name=a&metadata[${"k".repeat(41)}]=v`)).toEqual([400, undefined, "metadata"])
      expect(yield* post("/v1/products", `name=a&metadata[k]=${"v".repeat(501)}`)).toEqual([400, undefined, "metadata"])
      expect(yield* post("/v1/products", "name=a&metadata[__proto__]=v")).toEqual([
        400,
        "parameter_unknown",
        "metadata[__proto__]"
      ])
      expect(yield* post("/v1/products", "name=a&metadata[a[b]=v")).toEqual([400, "parameter_unknown", "metadata[a[b]"])
      expect(yield* post("/v1/products", "name=a&expand=default_price")).toEqual([400, undefined, "expand"])
      expect(yield* post("/v1/prices", "currency=brl&unit_amount=1.5")).toEqual([
        400,
        "parameter_invalid_integer",
        "unit_amount"
      ])
      expect(yield* post("/v1/prices", "currency=brl&unit_amount=-1")).toEqual([
        400,
        "parameter_invalid_integer",
        "unit_amount"
      ])
      expect(yield* post("/v1/prices", "currency=zzz&unit_amount=1")).toEqual([400, undefined, "currency"])
      expect(yield* post("/v1/prices", "currency=brl&tiers[0][up_to]=many")).toEqual([
        400,
        "parameter_invalid_integer",
        "tiers[0][up_to]"
      ])
      expect(yield* post("/v1/prices", "currency=brl&recurring[interval]=fortnight")).toEqual([
        400,
        undefined,
        "recurring[interval]"
      ])
      expect(yield* post("/v1/prices", "currency=brl&recurring[usage_type]=metered&recurring[interval]=day")).toEqual([
        400,
        undefined,
        "recurring[usage_type]"
      ])
      expect(
        yield* post(
          "/v1/checkout/sessions",
          "mode=payment&success_url=https://a.example&line_items[0][price]=price_x&line_items[0][quantity]=0"
        )
      ).toEqual([400, "parameter_invalid_integer", "line_items[0][quantity]"])
      const events = yield* raw(emulator.url, "/v1/events", { headers: { "stripe-account": account } })
      expect(JSON.parse(events.text).data).toEqual([])
    })
  )

  it.scopedLive("arrive form-encoded and of bounded size, or not at all", () =>
    Effect.gen(function* () {
      const { emulator } = yield* connected()
      const json = yield* raw(emulator.url, "/v1/products", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"name":"a"}'
      })
      expect(json.status).toBe(400)
      const large = yield* raw(emulator.url, "/v1/products", {
        method: "POST",
        body: new URLSearchParams({ name: "a".repeat(1_100_000) })
      })
      expect(large.status).toBe(413)
    })
  )
})

describe("expand", () => {
  it.scopedLive("shows the objects that were asked for, and ids elsewhere", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const product = yield* call(() =>
        stripe.products.create({
          name: "Coffee",
          default_price_data: { currency: "usd", unit_amount: 5 },
          expand: ["default_price.product"]
        })
      )
      expect(product.default_price).toMatchObject({
        object: "price",
        unit_amount: 5,
        product: { object: "product", id: product.id }
      })
      const price = yield* somePrice(stripe)
      expect(price.product).toMatch(/^prod_/)
      const expanded = yield* call(() => stripe.prices.retrieve(price.id, { expand: ["product"] }))
      expect(expanded.product).toMatchObject({ name: "Coffee" })
      const list = yield* call(() => stripe.products.list({ expand: ["data.default_price"] }))
      expect(list.data.at(-1)?.default_price).toMatchObject({ object: "price" })

      const session = yield* someSession(stripe)
      expect(session.line_items).toBeUndefined()
      yield* submit(session.url, { action: "pay" })
      const whole = yield* call(() =>
        stripe.checkout.sessions.retrieve(session.id, {
          expand: ["line_items.data.price.product", "payment_intent.latest_charge.payment_intent"]
        })
      )
      expect(whole.line_items).toMatchObject({
        object: "list",
        has_more: false,
        data: [{ object: "item", quantity: 2, price: { product: { name: "Coffee" } } }]
      })
      expect(whole.payment_intent).toMatchObject({
        latest_charge: { object: "charge", payment_intent: { object: "payment_intent" } }
      })
    })
  )

  it.scopedLive("refuses what cannot be expanded, even where there is nothing to expand", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const session = yield* someSession(stripe)
      for (const expand of [
        "shipping_cost",
        "discounts",
        "payment_intent.nothing",
        "id",
        "data.payment_intent",
        "line_items.price",
        "",
        "constructor",
        "payment_intent.latest_charge.payment_intent.latest_charge.payment_intent"
      ]) {
        const error = yield* refusal(() => stripe.checkout.sessions.retrieve(session.id, { expand: [expand] }))
        expect([expand, error.statusCode]).toEqual([expand, 400])
      }
      expect(yield* said(() => stripe.products.list({ expand: ["default_price"] }))).toMatchObject({
        statusCode: 400,
        param: "expand"
      })
    })
  )
})

describe("lists", () => {
  it.scopedLive("answer pages in both directions, newest first, every object once", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const made: Array<string> = []
      for (let index = 0; index < 23; index++)
        made.unshift((yield* call(() => stripe.products.create({ name: `p${index}` }))).id)
      const first = yield* call(() => stripe.products.list())
      expect(first).toMatchObject({ object: "list", url: "/v1/products", has_more: true })
      expect(first.data.map(({ id }) => id)).toEqual(made.slice(0, 10))
      const second = yield* call(() => stripe.products.list({ limit: 5, starting_after: made[9] ?? "" }))
      expect([second.data.map(({ id }) => id), second.has_more]).toEqual([made.slice(10, 15), true])
      const back = yield* call(() => stripe.products.list({ limit: 5, ending_before: made[9] ?? "" }))
      expect([back.data.map(({ id }) => id), back.has_more]).toEqual([made.slice(4, 9), true])
      const start = yield* call(() => stripe.products.list({ limit: 9, ending_before: made[9] ?? "" }))
      expect([start.data.map(({ id }) => id), start.has_more]).toEqual([made.slice(0, 9), false])
      const end = yield* call(() => stripe.products.list({ limit: 13, starting_after: made[9] ?? "" }))
      expect([end.data.map(({ id }) => id), end.has_more]).toEqual([made.slice(10), false])
      const all = yield* call(() => stripe.products.list({ limit: 4 }).autoPagingToArray({ limit: 100 }))
      expect(all.map(({ id }) => id)).toEqual(made)
    })
  )

  it.scopedLive("filter, and find the next page by a cursor that the filter leaves out", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const product = yield* call(() => stripe.products.create({ name: "a" }))
      const usd = yield* somePrice(stripe, { product: product.id, currency: "usd", lookup_key: "k1" })
      const monthly = yield* somePrice(stripe, { recurring: { interval: "month" } })
      const brl = yield* somePrice(stripe, { active: false })
      const ids = (params: Stripe.PriceListParams) =>
        Effect.map(
          call(() => stripe.prices.list(params)),
          ({ data }) => data.map(({ id }) => id)
        )
      expect(yield* ids({ active: true })).toEqual([monthly.id, usd.id])
      expect(yield* ids({ active: false })).toEqual([brl.id])
      expect(yield* ids({ currency: "usd" })).toEqual([usd.id])
      expect(yield* ids({ type: "recurring" })).toEqual([monthly.id])
      expect(yield* ids({ product: product.id })).toEqual([usd.id])
      expect(yield* ids({ lookup_keys: ["k1", "k2"] })).toEqual([usd.id])
      expect(yield* ids({ created: { gte: usd.created } })).toHaveLength(3)
      expect(yield* ids({ created: { gt: brl.created } })).toEqual([])
      expect(yield* ids({ created: { lt: usd.created } })).toEqual([])
      expect(yield* ids({ created: { lte: brl.created }, limit: 1, starting_after: brl.id, active: true })).toEqual([
        monthly.id
      ])
    })
  )

  it.scopedLive("refuse a limit outside 1 to 100, an unknown cursor and two cursors at once", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const { id } = yield* call(() => stripe.products.create({ name: "a" }))
      for (const limit of [0, 101, -1, 1.5]) {
        expect(yield* said(() => stripe.products.list({ limit }))).toMatchObject({
          statusCode: 400,
          param: "limit",
          code: "parameter_invalid_integer"
        })
      }
      expect(yield* said(() => stripe.products.list({ starting_after: "prod_none" }))).toMatchObject({
        statusCode: 400,
        param: "starting_after",
        code: "resource_missing"
      })
      expect(yield* said(() => stripe.products.list({ starting_after: id, ending_before: id }))).toMatchObject({
        statusCode: 400
      })
    })
  )
})
