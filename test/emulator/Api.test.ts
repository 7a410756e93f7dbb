import { Effect } from "effect"
import { Stripe } from "stripe"
import { apiVersion } from "../../src/emulator/Versions.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { call, onEmulator, raw, refusal, said, sdk, secretKey, someSession, startEmulator } from "./Harness.ts"

describe("access", () => {
  onEmulator("accepts the platform's key as Bearer and as Basic, and no other", function* ({ emulator }) {
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

  onEmulator("keeps each account's objects to itself", function* ({ account, emulator, stripe }) {
    const product = yield* call(() => stripe.products.create({ name: "Mine" }))
    const other = sdk(emulator.url, yield* emulator.ensureAccount())
    const missing = { statusCode: 404, code: "resource_missing", param: "id", rawType: "invalid_request_error" }
    expect(yield* said(() => other.products.retrieve(product.id))).toEqual(missing)
    expect(yield* said(() => sdk(emulator.url).products.retrieve(product.id))).toEqual(missing)
    expect((yield* call(() => other.products.list())).data).toEqual([])
    expect(
      yield* said(() => other.prices.create({ currency: "usd", unit_amount: 1, product: product.id }))
    ).toMatchObject({ statusCode: 400, code: "resource_missing", param: "product" })
    expect((yield* call(() => stripe.accounts.retrieve(account))).id).toBe(account)
  })

  onEmulator("answers 403 account_invalid for an account that is not connected", function* ({ emulator, stripe }) {
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

  it.scopedLive("makes an account once, and lists the connected ones without the platform's own", function* () {
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
})

describe("every answer", () => {
  onEmulator("carries its own request id and the installed SDK's API version", function* ({ emulator, stripe }) {
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
    expect((yield* raw(emulator.url, "/v1/account", { headers: { "stripe-version": "2020-01-01" } })).status).toBe(400)
  })

  onEmulator("is an error in the provider's form for an unknown URL or method", function* ({ emulator, stripe }) {
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
})

describe("parameters", () => {
  onEmulator("are refused by name if unknown, missing or of the wrong type", function* ({ account, emulator }) {
    const post = (path: string, body: string) =>
      Effect.map(
        raw(emulator.url, path, {
          method: "POST",
          headers: { "stripe-account": account, "content-type": "application/x-www-form-urlencoded" },
          body
        }),
        ({ status, text }) => [status, JSON.parse(text).error?.code, JSON.parse(text).error?.param]
      )
    const nineImages = Array.from({ length: 9 }, (_, i) => `images[]=https://a.example/${i}`).join("&")
    const noneOfIt = "mode=payment&success_url=https://a.example&line_items[0][price]=price_x&line_items[0][quantity]=0"
    const metered = "currency=brl&recurring[usage_type]=metered&recurring[interval]=day"
    for (const [path, body, code, param] of [
      ["/v1/products", "name=a&colour=red", "parameter_unknown", "colour"],
      ["/v1/products", "", "parameter_missing", "name"],
      ["/v1/products", "name=", "parameter_invalid_empty", "name"],
      ["/v1/products", "name=a&name=b", undefined, "name"],
      ["/v1/products", "name[a]=b", undefined, "name"],
      ["/v1/products", "name=a&active=yes", undefined, "active"],
      ["/v1/products", "name=a&url=ftp://x", "url_invalid", "url"],
      ["/v1/products", "name=a&images[0]=nonsense", "url_invalid", "images[0]"],
      ["/v1/products", `name=a&${nineImages}`, undefined, "images"],
      ["/v1/products", "name=a&package_dimensions[height]=1", "parameter_missing", "package_dimensions[length]"],
      ["/v1/products", "name=a&package_dimensions=1", undefined, "package_dimensions"],
      ["/v1/products", `name=a&metadata[${"k".repeat(41)}]=v`, undefined, "metadata"],
      ["/v1/products", `name=a&metadata[k]=${"v".repeat(501)}`, undefined, "metadata"],
      ["/v1/products", "name=a&metadata[__proto__]=v", "parameter_unknown", "metadata[__proto__]"],
      ["/v1/products", "name=a&metadata[a[b]=v", "parameter_unknown", "metadata[a[b]"],
      ["/v1/products", "name=a&metadata[b]c=v", "parameter_unknown", "metadata[b]c"],
      ["/v1/products", "name=a&%ZZ=v", "parameter_unknown", "%ZZ"],
      ["/v1/products", "name=a&images[5000]=v", undefined, undefined],
      ["/v1/products", "name=a&metadata[b][c][d][e][f][g][h][i][j]=v", undefined, undefined],
      ["/v1/products", "name=a&expand=default_price", undefined, "expand"],
      ["/v1/prices", "currency=brl&unit_amount=1.5", "parameter_invalid_integer", "unit_amount"],
      ["/v1/prices", "currency=brl&unit_amount=-1", "parameter_invalid_integer", "unit_amount"],
      ["/v1/prices", "currency=zzz&unit_amount=1", undefined, "currency"],
      ["/v1/prices", "currency=brl&tiers[0][up_to]=many", "parameter_invalid_integer", "tiers[0][up_to]"],
      ["/v1/prices", "currency=brl&recurring[interval]=fortnight", undefined, "recurring[interval]"],
      ["/v1/prices", metered, undefined, "recurring[usage_type]"],
      ["/v1/checkout/sessions", noneOfIt, "parameter_invalid_integer", "line_items[0][quantity]"]
    ] as const) {
      expect([body, ...(yield* post(path, body))]).toEqual([body, 400, code, param])
    }
    const events = yield* raw(emulator.url, "/v1/events", { headers: { "stripe-account": account } })
    expect(JSON.parse(events.text).data).toEqual([])
  })

  onEmulator("arrive form-encoded and of bounded size, or not at all", function* ({ emulator }) {
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
})

describe("expand", () => {
  onEmulator("refuses what cannot be expanded, even where there is nothing to expand", function* ({ stripe }) {
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
})
