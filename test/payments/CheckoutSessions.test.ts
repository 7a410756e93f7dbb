import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { Accounts } from "../../src/payments/Accounts.ts"
import { CheckoutSessions } from "../../src/payments/checkout-sessions/CheckoutSessions.ts"
import { Provider } from "../../src/payments/Provider.ts"
import { Prices, trialOf } from "../../src/payments/prices/Prices.ts"
import { stripeProviderLayer } from "../../src/payments/stripe/StripeProvider.ts"
import { type MovableClock, makeMovableClock } from "../harness/MovableClock.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import {
  dataOf,
  newTenant,
  newTenantWithPrice,
  part,
  payAt,
  priceOf,
  soldItems,
  type Tenant
} from "./ConnectedTenant.ts"

const recurring = (trial_period_days?: number) => ({
  recurring: { interval: "month", ...(trial_period_days === undefined ? {} : { trial_period_days }) }
})

const session = (mode: "payment" | "subscription", ...prices: ReadonlyArray<string>) => ({
  mode,
  line_items: prices.map((price) => ({ price, quantity: 1 }))
})

const complete = (tenant: Tenant, sessionId: string) =>
  Effect.flatMap(TestService, ({ services }) =>
    Context.get(services, CheckoutSessions).completeSoldItems(
      { organizationId: tenant.id, environment: "sandbox" },
      sessionId
    )
  )

const noPages = { successUrl: null, cancelUrl: null }

/** A day's trial more or less decides over money: terms may change at the provider while a process remembers them. */
const withClock = <A, E, R>(effect: (forward: MovableClock["forward"]) => Effect.Effect<A, E, R>) => {
  const clock = makeMovableClock()
  return Effect.withClock(effect(clock.forward), clock)
}

onSharedService("checkout sessions", (it) => {
  it.effect("sell the trial that a price has now, five minutes after it was changed at the provider", () =>
    withClock((forward) =>
      Effect.gen(function* () {
        const { services, sql } = yield* TestService
        const { id: organizationId } = yield* newTenant
        let days = 30
        const context = yield* Layer.build(
          Prices.layer.pipe(
            Layer.provide(Accounts.layer),
            Layer.provide(
              Layer.succeed(Provider, {
                ...Context.get(services, Provider),
                retrievePrice: () => Effect.succeed({ id: "price_1", recurring: { trial_period_days: days } })
              })
            ),
            Layer.provide(Layer.succeed(SqlClient.SqlClient, sql))
          )
        )
        const trial = Effect.map(
          Context.get(context, Prices).termsOf({ organizationId, environment: "sandbox" }, [{ price: "price_1" }]),
          trialOf
        )
        expect(yield* trial).toBe(30)
        days = 7
        forward("4 minutes")
        expect(yield* trial).toBe(30)
        forward("61 seconds")
        expect(yield* trial).toBe(7)
      }).pipe(Effect.scoped)
    )
  )

  it.effect("are created again under their key if the operator's pages changed after a lost answer", function* () {
    const { emulator, options } = yield* TestService
    const { price, tenant } = yield* newTenantWithPrice()
    const account = { environment: "sandbox", accountId: tenant.accountId } as const
    const createUnder = (checkoutSuccessUrl: string) =>
      Effect.flatMap(Provider, (provider) =>
        provider.createCheckoutSession(
          account,
          { ...session("payment", price), mode: "payment", trialPeriodDays: null, returnUrls: noPages },
          { idempotencyKey: "the-same-key" }
        )
      ).pipe(
        Effect.provide(
          stripeProviderLayer({ ...options.provider, apiUrl: Option.some(new URL(emulator.url)), checkoutSuccessUrl })
        ),
        Effect.map((created) => created.session["id"])
      )
    const first = yield* createUnder("https://shop.example/thanks")
    expect(yield* createUnder("https://shop.example/thanks")).toBe(first)
    expect(yield* createUnder("https://shop.example/thank-you")).not.toBe(first)
  })

  it.effect("of a subscription take 20 lines that recur and 20 others, and refuse more without a call", function* () {
    const tenant = yield* newTenant
    const [{ price: monthly }, { price: once }] = [yield* priceOf(tenant, recurring()), yield* priceOf(tenant)]
    const lines = (recurringLines: number, others: number) =>
      tenant.post("/checkout/sessions", {
        mode: "subscription",
        line_items: [...Array(recurringLines).fill(monthly), ...Array(others).fill(once)].map((price) => ({
          price,
          quantity: 1
        }))
      })
    expect((yield* lines(20, 20)).status).toBe(200)
    for (const [recurringLines, others] of [
      [21, 0],
      [1, 21]
    ] as const) {
      const refused = yield* lines(recurringLines, others)
      expectFailure(refused, { status: 422, code: "provider_invalid_request_error", fields: ["line_items"] })
      expect(refused.json["error"]).toContain("20 lines with recurring prices")
    }
  })

  it.effect("of a recurring price need subscriptions:write, whatever mode the caller says", function* () {
    const { price, tenant } = yield* newTenantWithPrice(recurring())
    const oneTime = yield* priceOf(tenant)
    const key = yield* tenant.keyOf(["payments:write"])
    const send = (body: unknown, idempotencyKey: string, withKey = key) =>
      tenant.send("POST", "/checkout/sessions", {
        key: withKey,
        body,
        headers: { "idempotency-key": idempotencyKey }
      })
    for (const [key, body] of [
      ["the-recurring-price", session("subscription", price)],
      ["in-payment-mode", session("payment", price)],
      ["beside-another-one", session("payment", oneTime.price, price)]
    ] as const) {
      const answer = yield* send(body, key)
      expectFailure(answer, { status: 403, code: "permission_denied", fields: [] })
      expect(answer.json["error"]).toContain("subscriptions:write")
    }
    expect(dataOf(yield* tenant.atProvider("/checkout/sessions"))).toEqual([])
    expect((yield* send(session("payment", oneTime.price), "the-one-time-price")).status).toBe(200)
    const both = yield* tenant.keyOf(["payments:write", "subscriptions:write"])
    expect((yield* send(session("subscription", price), "the-recurring-price", both)).status).toBe(200)
    expectFailure(
      yield* send(session("payment", price), "the-wrong-mode", both),
      refusedWith(422, "provider_invalid_request_error", ["mode"])
    )
  })

  it.effect("are refused for other reasons as they are, also to those who may not sell subscriptions", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const key = yield* tenant.keyOf(["payments:write"])
    const body = session("payment", price, "price_unknown")
    const headers = { "idempotency-key": "unknown-price" }
    expectFailure(
      yield* tenant.send("POST", "/checkout/sessions", { key, body, headers }),
      refusedWith(422, "provider_resource_missing", ["line_items.1.price"])
    )
  })

  it.effect("of what can't be sold, or not together, are refused by the provider's code and the item", function* () {
    const tenant = yield* newTenant
    const priced = (more: object = {}) => Effect.map(priceOf(tenant, more), ({ price }) => price)
    const price = yield* priced()
    const [monthly, yearly] = [yield* priced(recurring()), yield* priced({ recurring: { interval: "year" } })]
    const archived = yield* priceOf(tenant)
    yield* tenant.patch(`/products/${archived.product}`, { active: false })
    const chosen = yield* priced({ unit_amount: undefined, custom_unit_amount: {} })
    const most = yield* priced({ unit_amount: 99_999_999 })
    const mostRupiah = yield* priced({ currency: "idr", unit_amount: 999_999_999_999 })
    for (const [mode, prices, code, field] of [
      ["payment", [archived.price], "product_inactive", "line_items.0.price"],
      ["payment", [price, yield* priced({ currency: "usd" })], "invalid_request_error", "line_items.1.price"],
      ["payment", [most, price], "amount_too_large", "line_items"],
      ["payment", [mostRupiah, mostRupiah], "amount_too_large", "line_items"],
      ["payment", [yield* priced({ unit_amount: 49 })], "amount_too_small", "line_items"],
      ["payment", [chosen, price], "invalid_request_error", "line_items.0"],
      ["subscription", [price], "invalid_request_error", "mode"],
      ["subscription", [monthly, yearly], "invalid_request_error", "line_items"]
    ] as const) {
      const refused = yield* tenant.post("/checkout/sessions", session(mode, ...prices))
      expectFailure(refused, { status: 422, code: `provider_${code}`, fields: [field] }, `${code} ${field}`)
    }
  })

  it.effect.each([
    ["no trial", [undefined], null],
    ["the price's trial", [14], 14],
    ["the longest trial of its prices", [7, undefined, 30], 30]
  ] as const)("make subscriptions with %s", function* ([, trials, expected]) {
    const tenant = yield* newTenant
    const prices = yield* Effect.forEach(trials, (trial) => priceOf(tenant, recurring(trial)))
    const made = yield* tenant.post("/checkout/sessions", session("subscription", ...prices.map(({ price }) => price)))
    expect(made.status, made.text).toBe(200)
    // Nothing is due in a trial
    expect(made.json["amount_total"]).toBe(expected === null ? 1500 : 0)
    yield* payAt(made.json["url"])
    const paid = (yield* tenant.get(`/checkout/sessions/${idOf(made)}`)).json
    const subscription = yield* tenant.atProvider(`/subscriptions/${paid["subscription"]}`)
    const days = (Number(subscription["trial_end"]) - Number(subscription["trial_start"])) / 86_400
    expect(days).toBe(expected ?? 0)
  })

  it.effect("carry promotion codes, the caller's reference and metadata, and the service's mark", function* () {
    const tenant = yield* newTenant
    const [first, second] = [yield* priceOf(tenant), yield* priceOf(tenant)]
    const body = {
      ...session("payment", first.price, second.price, first.price),
      allow_promotion_codes: true,
      client_reference_id: "order-1",
      metadata: { campaign: "summer" }
    }
    const made = yield* tenant.post("/checkout/sessions", body)
    expect(made.json).toMatchObject({
      allow_promotion_codes: true,
      client_reference_id: "order-1",
      metadata: { campaign: "summer", svc_source: "connected-payments" }
    })
    expect(made.json).not.toHaveProperty("client_secret")
    // Each price and product once
    expect(yield* soldItems(tenant, idOf(made))).toEqual({
      prices: [first.price, second.price],
      products: [first.product, second.product]
    })
    yield* payAt(made.json["url"])
    const paid = (yield* tenant.get(`/checkout/sessions/${idOf(made)}`)).json
    const intent = yield* tenant.atProvider(`/payment_intents/${paid["payment_intent"]}`)
    expect(intent["metadata"]).toEqual({ campaign: "summer" })
  })

  it.effect(
    "are the same object wherever answered; remember and list what they sell page by page in order",
    function* () {
      const { product, tenant } = yield* newTenantWithPrice()
      const prices = yield* Effect.forEach(Array.from({ length: 12 }), (_, n) =>
        Effect.map(tenant.post("/prices", { product, currency: "brl", unit_amount: n + 100 }), idOf)
      )
      const made = yield* tenant.post("/checkout/sessions", session("payment", ...prices))
      const path = `/checkout/sessions/${idOf(made)}`
      // Of which the provider shows but ten with it
      expect((yield* soldItems(tenant, idOf(made)))?.prices).toEqual(prices)
      expect((yield* tenant.get(path)).json).toEqual(made.json)
      expect(dataOf((yield* tenant.get("/checkout/sessions")).json)).toEqual([made.json])
      const first = (yield* tenant.get(`${path}/line-items`)).json
      expect(first).toMatchObject({
        has_more: true,
        data: prices.slice(0, 10).map((id) => ({ object: "item", quantity: 1, price: { id, product } }))
      })
      const last = (yield* tenant.get(`${path}/line-items?limit=5&starting_after=${dataOf(first).at(-1)?.["id"]}`)).json
      expect(last).toMatchObject({ has_more: false, data: prices.slice(10).map((id) => ({ price: { id } })) })
      expect(dataOf((yield* tenant.get(`${path}/line-items?limit=100`)).json)).toHaveLength(12)
      expectFailure(
        yield* tenant.get(`${path}/line-items?starting_after=li_unknown`),
        refusedWith(422, "provider_resource_missing", ["starting_after"])
      )
    }
  )

  it.effect("are listed by their status, their payment and the time of their creation, page by page", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const make = () => Effect.map(tenant.post("/checkout/sessions", session("payment", price)), ({ json }) => json)
    const [open, paid, expired, later] = [yield* make(), yield* make(), yield* make(), yield* make()]
    yield* payAt(paid["url"])
    yield* tenant.post(`/checkout/sessions/${expired["id"]}/expire`, undefined)
    const found = (query: string) =>
      Effect.map(tenant.get(`/checkout/sessions?${query}`), ({ json, status, text }) => {
        expect(status, text).toBe(200)
        return dataOf(json).map(({ id }) => id)
      })
    expect(yield* found("status=complete")).toEqual([paid["id"]])
    expect(yield* found("status=expired")).toEqual([expired["id"]])
    expect(yield* found("status=open")).toEqual([later["id"], open["id"]])
    const page = (yield* tenant.get("/checkout/sessions?status=open&limit=1")).json
    expect(page).toMatchObject({ has_more: true, data: [{ id: later["id"] }] })
    expect(part(page, "data", 0)).not.toHaveProperty("client_secret")
    expect(yield* found(`status=open&starting_after=${later["id"]}`)).toEqual([open["id"]])
    expect(yield* found("payment_intent=pi_unknown")).toEqual([])
    const [first, last] = [Number(open["created"]), Number(later["created"])]
    expect(yield* found(`created_gte=${first}&created_lte=${last}`)).toHaveLength(4)
    expect(yield* found(`status=open&created_gte=${last + 1}`)).toEqual([])
    expect(yield* found(`created_lte=${first - 1}`)).toEqual([])
    for (const [query, field] of [
      ["status=paid", "status"],
      ["status=", "status"],
      ["status=open&status=expired", "status"],
      ["created_gte=-1", "created_gte"]
    ] as const) {
      const refused = yield* tenant.get(`/checkout/sessions?${query}`)
      expectFailure(refused, { status: 422, code: "validation_failed", fields: [field] }, query)
    }
  })

  it.effect("expire, after which nobody can pay them; a second expiry changes nothing", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const made = yield* tenant.post("/checkout/sessions", session("payment", price))
    const path = `/checkout/sessions/${idOf(made)}/expire`
    const expired = yield* tenant.post(path, undefined, "let-it-expire")
    expect(expired.status, expired.text).toBe(200)
    expect(expired.json).toEqual({ ...made.json, status: "expired", url: null })
    expect((yield* Effect.exit(payAt(made.json["url"])))._tag).toBe("Failure")
    const repeated = yield* tenant.post(path, undefined, "let-it-expire")
    expect([repeated.text, repeated.headers.get("idempotent-replayed")]).toEqual([expired.text, "true"])
    const again = yield* tenant.post(path, undefined)
    expect([again.status, again.json]).toEqual([200, expired.json])
    expect(yield* tenant.audited).toContain(`checkout_session.expired ${idOf(made)}`)
    expectFailure(yield* tenant.send("POST", path), refusedWith(422, "validation_failed", ["idempotency-key"]))
    expectFailure(yield* tenant.post(path, { reason: "late" }), { status: 422, code: "validation_failed" })
  })

  it.effect("that are paid don't expire", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const made = yield* tenant.post("/checkout/sessions", session("payment", price))
    yield* payAt(made.json["url"])
    const path = `/checkout/sessions/${idOf(made)}`
    expectFailure(
      yield* tenant.post(`${path}/expire`, undefined),
      refusedWith(422, "provider_invalid_request_error", [])
    )
    expect((yield* tenant.get(path)).json).toMatchObject({ status: "complete", payment_status: "paid" })
  })

  it.effect("expire though the answer is lost", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const id = idOf(yield* tenant.post("/checkout/sessions", session("payment", price)))
    const expire = tenant.post(`/checkout/sessions/${id}/expire`, undefined, "lost-expiry")
    const fault = { fault: "lost_answer", method: "POST", path: `/v1/checkout/sessions/${id}/expire` } as const
    expectFailure(yield* tenant.during(fault, expire), { status: 502, code: "provider_unavailable" })
    expect((yield* expire).json).toMatchObject({ id, status: "expired" })
  })

  it.effect("of which a crash left no record have it completed from the provider, once", function* () {
    const { price, product, tenant } = yield* newTenantWithPrice()
    const id = idOf(yield* tenant.post("/checkout/sessions", session("payment", price)))
    yield* tenant.sql`DELETE FROM payments.sold_items WHERE source_id = ${id}`
    for (let times = 0; times < 2; times++) {
      expect(yield* complete(tenant, id)).toEqual({ priceIds: [price], productIds: [product] })
    }
    expect(yield* soldItems(tenant, id)).toEqual({ prices: [price], products: [product] })
  })

  it.effect("made elsewhere have no record, and get none", function* () {
    const { price, tenant } = yield* newTenantWithPrice()
    const elsewhere = yield* tenant.doAtProvider("/checkout/sessions", {
      mode: "payment",
      "line_items[0][price]": price,
      "line_items[0][quantity]": "1",
      success_url: "https://shop.example"
    })
    const id = String(elsewhere["id"])
    expect(yield* complete(tenant, id)).toBeNull()
    expect(yield* soldItems(tenant, id)).toBeUndefined()
  })

  it.effect("of another tenant are not completed", function* () {
    const [mine, other] = [yield* newTenant, yield* newTenant]
    const { price } = yield* priceOf(other)
    const id = idOf(yield* other.post("/checkout/sessions", session("payment", price)))
    expect(yield* Effect.flip(complete(mine, id))).toMatchObject({ _tag: "ProviderObjectNotFound" })
    expect(yield* soldItems(mine, id)).toBeUndefined()
  })

  it.effect.each([
    ["the service's own metadata", { metadata: { svc_source: "mine" } }, ["metadata.svc_source"]],
    ["a page of the service's", { metadata: { svc_checkout_page: "7" } }, ["metadata.svc_checkout_page"]],
    [
      "50 pairs, one of which is the service's own",
      { metadata: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`key${n}`, ""])) },
      ["metadata"]
    ],
    ...["success_url", "cancel_url", "return_url", "url", "after_expiration"].map(
      (field) => [`a ${field} of the caller's`, { [field]: "https://evil.example" }, [field]] as const
    )
  ] as const)("with %s are refused before the provider is asked", function* ([, more, fields]) {
    const tenant = yield* newTenant
    const body = { ...session("payment", "price_123"), ...more }
    const answer = yield* tenant.during({ fault: "html_502" }, tenant.post("/checkout/sessions", body))
    expectFailure(answer, { status: 422, code: "validation_failed", fields })
  })
})
