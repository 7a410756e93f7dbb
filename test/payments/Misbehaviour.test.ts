import { randomUUID } from "node:crypto"
import { type Clock, Duration, Effect, Fiber, Layer } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { makeMovableClock } from "../harness/MovableClock.ts"
import { testReturnUrls } from "../harness/TestService.ts"
import { expect, layer } from "../harness/Tests.ts"
import { expectFailure } from "../surface/http/Refusals.ts"
import { makeLiveKey } from "../surface/http/StartedService.ts"
import { type Behaviour, dripping, flooding, replying, resetting, silent } from "./ScriptedProvider.ts"
import { platformId, platformKey, ScriptedService, scriptedTenant } from "./ScriptedService.ts"

/** What a provider's messages may carry, and nobody but the provider may ever read. */
const leak = "LEAKED: the key sk_test_platf****orm does not have access to payer@example.com"

/** A call's whole time. It passes only when a test says so: no call ends because the machine is slow. */
const deadline = Duration.seconds(50)

const real = makeMovableClock()
const waiting = new Set<() => void>()

/** The real clock, but for the deadlines of calls. */
const clock: Clock.Clock = {
  ...real,
  sleep: (duration) =>
    Duration.equals(duration, deadline)
      ? Effect.async<void>((resume) => {
          const pass = () => resume(Effect.void)
          waiting.add(pass)
          return Effect.sync(() => waiting.delete(pass))
        })
      : real.sleep(duration)
}

const passDeadlines = Effect.sync(() => waiting.forEach((pass) => void pass()))

/** A tenant that reads and creates a product, and how its account is recorded. */
const newTenant = Effect.gen(function* () {
  const { sql } = yield* ScriptedService
  const { send, ...tenant } = yield* scriptedTenant
  return {
    ...tenant,
    status: Effect.map(
      sql<{ status: string }>`SELECT status FROM payments.provider_accounts WHERE organization_id = ${tenant.id}`,
      ([row]) => row?.status
    ),
    get: send("GET", "/products/prod_123"),
    post: (body: unknown = { name: "Coffee" }, key: string = randomUUID(), path = "/products") =>
      send("POST", path, { body, headers: { "idempotency-key": key } })
  }
})

const refusing = (
  status: number,
  error: Readonly<Record<string, unknown>>,
  headers?: Readonly<Record<string, string>>
) => replying(status, { error: { type: "invalid_request_error", message: leak, ...error } }, headers)

const revoked = refusing(403, { code: "account_invalid" })

const ofItself = replying(200, { id: platformId, object: "account" })

const ofTheAccount: Behaviour = (call, response) =>
  replying(200, { id: call.headers["stripe-account"], object: "account" })(call, response)

const product = { id: "prod_123", object: "product", name: "Coffee" }

layer(Layer.provide(ScriptedService.layer(deadline), Layer.setClock(clock)))("a misbehaving provider", (it) => {
  it.effect.each([
    ["404 without an error object", replying(404, { message: leak }), 502, "provider_unavailable"],
    ["503 without an error object", replying(503, { message: leak }), 502, "provider_unavailable"],
    ["400 without an error object", replying(400, {}), 502, "provider_unavailable"],
    ["a null body", replying(200, null), 502, "provider_unavailable"],
    ["an HTML 502", replying(502, `<html><body>${leak}</body></html>`), 502, "provider_unavailable"],
    ["an HTML 200", replying(200, "<html>hello</html>"), 502, "provider_unavailable"],
    ["half a JSON text", replying(200, '{"id": "prod_'), 502, "provider_unavailable"],
    ["500", refusing(500, { type: "api_error" }), 502, "provider_unavailable"],
    ["a refused platform key", refusing(401, {}), 502, "provider_unavailable"],
    [
      "a permission that the platform lacks",
      refusing(403, { code: "more_permissions_required" }),
      502,
      "provider_permission_denied"
    ],
    ["a declined payment", refusing(402, { type: "card_error", code: "card_declined" }), 402, "provider_card_declined"],
    [
      "a decline code",
      refusing(402, { type: "card_error", code: "card_declined", decline_code: "lost_card" }),
      402,
      "provider_lost_card"
    ],
    ["a reused key", refusing(400, { type: "idempotency_error" }), 409, "idempotency_key_reused"],
    [
      "a key in use",
      refusing(409, { type: "idempotency_error", code: "idempotency_key_in_use" }),
      409,
      "idempotency_request_in_progress"
    ],
    ["another server's 200", replying(200, { status: "ok" }), 502, "provider_unavailable"],
    ["a redirect", replying(302, {}, { location: "http://127.0.0.1:9/" }), 502, "provider_unavailable"],
    ["an answer without an end", flooding, 502, "provider_unavailable"],
    ["connections that are reset", resetting, 502, "provider_unavailable"]
  ] as const)("%s is answered as documented, for reads and writes", function* ([, behaviour, status, code]) {
    const { provider } = yield* ScriptedService
    const { get, post } = yield* newTenant
    provider.behave(behaviour)
    const [read, write] = yield* Effect.all([get, post()], { concurrency: 2 })
    expectFailure(read, { status, code, fields: [] }, "read")
    expectFailure(write, { status, code, fields: [] }, "write")
  })

  it.effect.each([
    ["silence", silent],
    ["a slow drip that is never silent", dripping]
  ] as const)("%s is 504 provider_timeout at the call's deadline, for reads and writes", function* ([, behaviour]) {
    const { provider } = yield* ScriptedService
    const { calls, get, post } = yield* newTenant
    provider.behave(behaviour)
    const answers = yield* Effect.fork(Effect.all([get, post()], { concurrency: 2 }))
    yield* eventuallyTrue("both calls", () => calls().length === 2)
    yield* passDeadlines
    for (const answer of yield* Fiber.join(answers)) {
      expectFailure(answer, { status: 504, code: "provider_timeout", fields: [] })
    }
  })

  it.effect("an answer without an end is read no further once nobody waits for it", function* () {
    const { provider } = yield* ScriptedService
    const { calls, get } = yield* newTenant
    let closed = 0
    provider.behave((call, response) => {
      response.once("close", () => {
        closed += 1
      })
      flooding(call, response)
    })
    yield* get
    yield* eventuallyTrue("its connection is closed", () => closed === 1)
    // Not tried again: it would be as long
    expect(calls()).toHaveLength(1)
  })

  it.effect("that asks for fewer requests is 503 with its Retry-After", function* () {
    const { provider } = yield* ScriptedService
    const { get } = yield* newTenant
    for (const [headers, seconds] of [
      // Longer than the call may take: it is not repeated
      [{ "retry-after": "70" }, "70"],
      [{}, "1"]
    ] as const) {
      provider.behave(refusing(429, { code: "rate_limit" }, headers))
      const answer = yield* get
      expectFailure(answer, { status: 503, code: "provider_rate_limited", fields: [] })
      expect(answer.headers.get("retry-after")).toBe(seconds)
    }
  })

  it.effect("that revoked our access, and says so when asked, ends the connection until a new link", function* () {
    const { provider } = yield* ScriptedService
    const { accountId, calls, get, status } = yield* newTenant
    const notConnected = { status: 409, code: "provider_account_not_connected", fields: [] }
    provider.behave((call, response) => (call.path === "/v1/account" ? ofItself : revoked)(call, response))
    expectFailure(yield* get, notConnected)
    expect(calls().map(({ path }) => path.split("?")[0])).toEqual([
      "/v1/products/prod_123",
      `/v1/accounts/${accountId}`
    ])
    expect(yield* status).toBe("disconnected")
    provider.behave(replying(200, product))
    expectFailure(yield* get, notConnected)
    expect(calls()).toHaveLength(2)
  })

  it.effect.each([
    ["one call, but still shows the account", ofItself, ofTheAccount, "provider_permission_denied"],
    ["one call, and can't show the account", ofItself, replying(500, {}), "provider_unavailable"],
    ["all calls, one that names no account included", revoked, revoked, "provider_permission_denied"],
    ["access while it can't say which platform the key is of", replying(500, {}), revoked, "provider_unavailable"]
  ] as const)("that refuses %s disconnects nothing", function* ([, toItself, toTheAccount, code]) {
    const { log, provider } = yield* ScriptedService
    const { get, status } = yield* newTenant
    provider.behave((call, response) => {
      const asked = call.path.startsWith("/v1/accounts/") ? toTheAccount : revoked
      return (call.path === "/v1/account" ? toItself : asked)(call, response)
    })
    const answer = yield* get
    expect([answer.status, answer.json["code"]]).toEqual([502, code])
    expect(yield* status).toBe("connected")
    expect(log.map(({ text }) => text).join("\n")).not.toContain(platformKey)
  })

  it.effect("is called with the same derived key when a caller repeats, and no two callers' alike", function* () {
    const { provider } = yield* ScriptedService
    const [first, second] = [yield* newTenant, yield* newTenant]
    const callerKey = "k".repeat(255)
    provider.behave(silent)
    const unanswered = yield* Effect.fork(first.post(undefined, callerKey))
    yield* eventuallyTrue("the call", () => first.calls().length === 1)
    yield* passDeadlines
    expectFailure(yield* Fiber.join(unanswered), { status: 504, code: "provider_timeout" })
    provider.behave(replying(200, product))
    expect((yield* first.post(undefined, callerKey)).status).toBe(200)
    yield* first.post(undefined, "another-key")
    yield* second.post(undefined, callerKey)
    const price = { product: "prod_123", currency: "brl", unit_amount: 5 }
    yield* first.post(price, callerKey.replace("k", "p"), "/prices")
    const keysOf = (tenant: typeof first) => tenant.calls().map(({ headers }) => String(headers["idempotency-key"]))
    const [lost, repeated, ...others] = keysOf(first)
    expect(repeated).toBe(lost)
    const distinct = [repeated, ...others, ...keysOf(second)]
    expect(new Set(distinct).size).toBe(distinct.length)
    for (const key of distinct) {
      expect(key).toMatch(/^[0-9a-f]{64}$/)
    }
  })

  it.effect("gets the platform's key and the tenant's account, and nothing of the caller's", function* () {
    const { provider } = yield* ScriptedService
    const { accountId, calls, get } = yield* newTenant
    provider.behave(replying(200, product))
    expect((yield* get).json).toEqual(product)
    const [call] = calls()
    expect(call?.headers).toMatchObject({ authorization: `Bearer ${platformKey}`, "stripe-account": accountId })
    expect(call?.headers["x-api-key"]).toBeUndefined()
    expect(JSON.stringify(call?.headers)).not.toContain("pk_test_")
  })

  it.effect("gets a session's metadata for the subscription too, and the operator's return pages", function* () {
    const { provider } = yield* ScriptedService
    const { calls, post } = yield* newTenant
    provider.behave(replying(200, { id: "cs_test_1", object: "checkout.session", line_items: { data: [] } }))
    const body = {
      mode: "subscription",
      line_items: [{ price: "price_123", quantity: 3 }],
      client_reference_id: "order-1",
      metadata: { order: "42" }
    }
    expect((yield* post(body, randomUUID(), "/checkout/sessions")).status).toBe(200)
    const sent = Object.fromEntries(calls().find(({ method }) => method === "POST")?.body ?? [])
    expect(sent).toMatchObject({
      mode: "subscription",
      "line_items[0][price]": "price_123",
      "line_items[0][quantity]": "3",
      client_reference_id: "order-1",
      "metadata[order]": "42",
      "subscription_data[metadata][order]": "42",
      success_url: testReturnUrls.checkoutSuccessUrl,
      cancel_url: testReturnUrls.checkoutCancelUrl
    })
    const never = /^(payment_intent_data|application_fee|transfer_data|on_behalf_of|payment_method_types)/
    expect(Object.keys(sent).filter((name) => never.test(name))).toEqual([])
  })

  it.effect("is never called for a live key, though a production account were linked", function* () {
    const { provider, request, services, sql } = yield* ScriptedService
    const { id } = yield* newTenant
    const key = yield* makeLiveKey(services, id)
    const path = `/v2/organizations/${id}/provider/products`
    provider.behave(replying(200, product))
    const before = provider.calls.length
    expectFailure(yield* request("GET", path, { key }), { status: 409, code: "provider_account_not_connected" })
    yield* sql`
        INSERT INTO payments.provider_accounts (organization_id, environment, account_id, status, had_payments_before)
        VALUES (${id}, 'production', ${`acct_live${randomUUID().replaceAll("-", "")}`}, 'connected', false)`
    expect((yield* request("GET", path, { key })).status).toBeGreaterThanOrEqual(400)
    expect(provider.calls).toHaveLength(before)
  })

  it.effect("has none of its messages forwarded or logged, nor the platform's key", function* () {
    const { log, provider } = yield* ScriptedService
    const { get, post } = yield* newTenant
    for (const status of [400, 401, 402, 403, 404, 409, 429, 500, 503]) {
      provider.behave(refusing(status, { code: "some_code", param: "name" }))
      for (const answer of yield* Effect.all([get, post()], { concurrency: 2 })) {
        expect(answer.status, answer.text).toBeGreaterThanOrEqual(400)
        expect(answer.text).not.toMatch(/LEAKED|sk_test|payer@/)
      }
    }
    const logged = log.map(({ text }) => text).join("\n")
    expect(logged).toContain("The provider refuses the platform's key")
    expect(logged).not.toMatch(/LEAKED|sk_test_|payer@|pk_test_/)
  })
})
