import { Chunk, Duration, Effect, Fiber, Option, TestClock } from "effect"
import type { ConnectedAccount } from "../../src/payments/ProviderCall.ts"
import { repeated } from "../../src/payments/stripe/StripeCall.ts"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { scripted } from "./ScriptedAdapter.ts"
import { type Behaviour, makeScriptedProviderAt, replying, resetting, silent } from "./ScriptedProvider.ts"

const account: ConnectedAccount = { environment: "sandbox", accountId: "acct_1" }

const product = { id: "prod_123", object: "product" }

const refusing = (
  status: number,
  error: Readonly<Record<string, unknown>>,
  headers?: Readonly<Record<string, string>>
) => replying(status, { error: { type: "api_error", ...error } }, headers)

/** Until a call rests before its next attempt: its deadline is the other sleep. */
const pausing = Effect.flatMap(TestClock.testClock(), (clock) =>
  eventually(
    "a pause",
    Effect.map(clock.sleeps, (sleeps) => (Chunk.size(sleeps) === 2 ? Option.some(true) : Option.none()))
  )
)

/** One behaviour per call, the last one from then on. */
const inTurn = (...behaviours: ReadonlyArray<Behaviour>): Behaviour => {
  let calls = 0
  return (call, response) => {
    const behaviour = behaviours[Math.min(calls, behaviours.length - 1)]
    calls += 1
    behaviour?.(call, response)
  }
}

describe("a call to the provider", () => {
  it.scopedLive("reaches one whose URL has an IPv6 address", function* () {
    const { behave, calls, url } = yield* makeScriptedProviderAt("::1")
    behave(replying(200, product))
    const { provider } = yield* scripted({ apiUrl: Option.some(url) })
    expect(yield* provider.retrieveProduct(account, "prod_123")).toEqual(product)
    expect(calls.map(({ headers }) => headers.host)).toEqual([url.host])
  })

  it.scopedLive.each([
    ["a reset connection", resetting],
    ["a failure of the provider's", refusing(500, {})],
    ["a proxy's failure without an error object", replying(503, { status: "down" })],
    ["a proxy's failure as a page for people", replying(502, "<html>Bad gateway</html>")],
    ["a proxy's failure without a body", replying(503, "")],
    ["a proxy's failure that is no object", replying(504, null)],
    ["too many calls", refusing(429, { code: "rate_limit" })],
    ["a lock timeout", refusing(429, { code: "lock_timeout", type: "invalid_request_error" })],
    ["a key whose first call is still under way", refusing(409, { code: "idempotency_key_in_use" })],
    ["what the provider advises to repeat", refusing(400, {}, { "stripe-should-retry": "true" })]
  ] as const)("is made again after %s, a write under the same key", function* ([, behaviour]) {
    const [forReads, forWrites] = [yield* scripted(), yield* scripted()]
    for (const { behave } of [forReads, forWrites]) behave(inTurn(behaviour, behaviour, replying(200, product)))
    const [read] = yield* Effect.all(
      [
        forReads.provider.retrieveProduct(account, "prod_123"),
        forWrites.provider.createProduct(account, { name: "Coffee" }, { idempotencyKey: "derived-key" })
      ],
      { concurrency: 2 }
    )
    expect(read).toEqual(product)
    expect(forReads.calls).toHaveLength(3)
    const writes = forWrites.calls
    expect(writes.map(({ method }) => method)).toEqual(Array(3).fill("POST"))
    expect(writes.map(({ headers }) => headers["idempotency-key"])).toEqual(Array(3).fill("derived-key"))
    expect(new Set(writes.map(({ body }) => body.toString())).size).toBe(1)
  })

  it.scopedLive("is made at most three times", function* () {
    const { behave, calls, provider } = yield* scripted()
    behave(resetting)
    expect((yield* Effect.flip(provider.retrieveProduct(account, "prod_123")))._tag).toBe("ProviderUnavailable")
    expect(calls).toHaveLength(3)
  })

  it.scopedLive.each([
    ["a refused parameter", refusing(400, { code: "parameter_invalid", param: "name" })],
    ["a refused platform key", refusing(401, {})],
    ["a declined payment", refusing(402, { code: "card_declined" })],
    ["a lack of permission", refusing(403, { code: "more_permissions_required" })],
    ["revoked access", refusing(403, { code: "account_invalid" })],
    ["an unknown object", refusing(404, { code: "resource_missing" })],
    ["an answer that is not the provider's", replying(200, { hello: "world" })],
    ["no JSON", replying(200, "<html>")],
    ["null", replying(200, null)],
    ["a failure that the provider advises not to repeat", refusing(500, {}, { "stripe-should-retry": "false" })]
  ] as const)("is made once where it comes to %s", function* ([, behaviour]) {
    const { behave, calls, provider } = yield* scripted()
    behave(behaviour)
    yield* Effect.flip(provider.retrieveProduct(account, "prod_123"))
    expect(calls).toHaveLength(1)
  })

  it.scoped("waits as long as the provider asks, unless its deadline comes first", function* () {
    const { behave, calls, provider } = yield* scripted()
    behave(inTurn(refusing(429, {}, { "retry-after": "20" }), replying(200, product)))
    const asked = yield* Effect.fork(provider.retrieveProduct(account, "prod_123"))
    yield* pausing
    yield* TestClock.adjust("19999 millis")
    yield* pausing
    expect(calls).toHaveLength(1)
    yield* TestClock.adjust("1 millis")
    expect(yield* Fiber.join(asked)).toEqual(product)
    behave(refusing(429, {}, { "retry-after": "60" }))
    const failure = yield* Effect.flip(provider.retrieveProduct(account, "prod_123"))
    expect(failure).toMatchObject({ _tag: "ProviderRateLimited", retryAfter: Duration.seconds(60) })
    expect(calls).toHaveLength(3)
  })

  it.scoped("ends with its deadline, however often it was made", function* () {
    const { behave, calls, provider } = yield* scripted()
    behave(inTurn(resetting, silent))
    const failing = yield* Effect.fork(Effect.flip(provider.retrieveProduct(account, "prod_123")))
    yield* pausing
    yield* TestClock.adjust("250 millis")
    yield* eventuallyTrue("the second attempt", () => calls.length === 2)
    yield* TestClock.adjust("30 seconds")
    expect((yield* Fiber.join(failing))._tag).toBe("ProviderTimeout")
    expect(calls).toHaveLength(2)
  })

  it.scopedLive("waits for its turn if its account has as many under way as it may; others do not", function* () {
    const { behave, calls, provider } = yield* scripted({ concurrencyPerAccount: 2 })
    const answers: Array<() => void> = []
    const underWay = new Map<string, number>()
    const atOnce: Array<string> = []
    const count = (name: string, by: number) => underWay.set(name, (underWay.get(name) ?? 0) + by).get(name)
    behave((call, response) => {
      const name = String(call.headers["stripe-account"])
      atOnce.push(`${name}: ${count(name, 1)}`)
      answers.push(() => {
        count(name, -1)
        replying(200, product)(call, response)
      })
    })
    const read = (of: ConnectedAccount) => Effect.fork(provider.retrieveProduct(of, "prod_123"))
    const mine = yield* Effect.all(Array.from({ length: 5 }, () => read(account)))
    const other = yield* read({ ...account, accountId: "acct_2" })
    const arrived = (number: number) =>
      Effect.repeat(Effect.sleep("5 millis"), { until: () => answers.length >= number })
    yield* arrived(3)
    for (let answered = 0; answered < 6; answered += 1) {
      yield* arrived(answered + 1)
      answers[answered]?.()
    }
    yield* Fiber.joinAll([...mine, other])
    expect(calls).toHaveLength(6)
    expect([...new Set(atOnce)].toSorted()).toEqual(["acct_1: 1", "acct_1: 2", "acct_2: 1"])
  })

  it.scopedLive.each([
    ["a failure that it repeats", refusing(500, {}, { "idempotent-replayed": "true" })],
    ["a failure that it advises not to repeat", refusing(503, {}, { "stripe-should-retry": "false" })],
    ["one without an error object", replying(500, {}, { "stripe-should-retry": "false" })],
    ["a page for people", replying(502, "<html>", { "idempotent-replayed": "true" })]
  ] as const)("is made once, its outcome unknown, if the provider keeps %s under its key", function* ([, behaviour]) {
    const { behave, calls, provider } = yield* scripted()
    behave(behaviour)
    const write = yield* Effect.flip(
      provider.createRefund(account, { charge: "ch_1" }, { idempotencyKey: "derived-key" })
    )
    expect(write).toMatchObject({ _tag: "ProviderOutcomeUnknown", code: "provider_outcome_unknown", settles: "open" })
    expect(calls).toHaveLength(1)
    expect((yield* Effect.flip(provider.retrieveRefund(account, "re_1")))._tag).toBe("ProviderUnavailable")
  })

  it.scopedLive("is repeated until the provider repeats a failure under its key", function* () {
    const { behave, calls, provider } = yield* scripted()
    behave(inTurn(refusing(500, {}), refusing(500, {}, { "idempotent-replayed": "true" })))
    const write = yield* Effect.flip(
      provider.createRefund(account, { charge: "ch_1" }, { idempotencyKey: "derived-key" })
    )
    expect(write._tag).toBe("ProviderOutcomeUnknown")
    expect(calls).toHaveLength(2)
  })

  it.scopedLive("takes its turn until the provider has answered, though its caller has left", function* () {
    const { behave, calls, provider } = yield* scripted({ concurrencyPerAccount: 2 })
    const waiting: Array<() => void> = []
    let underWay = 0
    let most = 0
    behave((call, response) => {
      underWay += 1
      most = Math.max(most, underWay)
      waiting.push(() => {
        underWay -= 1
        replying(200, product)(call, response)
      })
    })
    const read = provider.retrieveProduct(account, "prod_123")
    const arrived = (number: number) => Effect.repeat(Effect.sleep("5 millis"), { until: () => calls.length >= number })
    const leaving = yield* Effect.all(Array.from({ length: 20 }, () => Effect.fork(read)))
    yield* arrived(2)
    yield* Fiber.interruptAll(leaving)
    const staying = yield* Effect.all(Array.from({ length: 6 }, () => Effect.fork(read)))
    for (let answered = 0; answered < 8; answered += 1) {
      yield* arrived(answered + 1)
      waiting[answered]?.()
    }
    yield* Fiber.joinAll(staying)
    expect(most).toBe(2)
    expect(calls).toHaveLength(8)
  })

  it.scopedLive("says how an account is paid out by its own settings if it has no balance settings", function* () {
    const { behave, provider } = yield* scripted()
    const shown = {
      id: "acct_1",
      object: "account",
      payouts_enabled: false,
      settings: { payouts: { schedule: { interval: "weekly", delay_days: 7, weekly_payout_days: ["monday"] } } }
    }
    for (const refusal of [
      refusing(400, { type: "invalid_request_error" }),
      refusing(403, { code: "more_permissions_required" }),
      refusing(404, { code: "resource_missing" })
    ]) {
      behave((call, response) =>
        (call.path.startsWith("/v1/balance_settings") ? refusal : replying(200, shown))(call, response)
      )
      expect(yield* provider.retrievePayoutSettings(account)).toEqual({
        object: "payout_settings",
        status: "disabled",
        schedule: { interval: "weekly", weekly_payout_days: ["monday"] },
        delay_days: 7,
        destinations: null
      })
    }
  })

  it.scopedLive("that lists the bank accounts of an account that does not show them comes to none", function* () {
    const { behave, provider } = yield* scripted()
    const shown = { id: "acct_1", object: "account", payouts_enabled: true, controller: { is_controller: true } }
    behave((call, response) =>
      (call.path.includes("external_accounts")
        ? refusing(403, { code: "more_permissions_required" })
        : call.path.startsWith("/v1/balance_settings")
          ? refusing(404, { code: "resource_missing" })
          : replying(200, shown))(call, response)
    )
    expect(yield* provider.retrievePayoutSettings(account)).toMatchObject({ status: "enabled", destinations: null })
  })

  it.scopedLive("that is refused for a parameter names it as callers do", function* () {
    const { behave, provider } = yield* scripted()
    const fieldsOf = (call: Effect.Effect<unknown, object>, status: number, param: string) => {
      behave(refusing(status, { type: "invalid_request_error", code: "resource_missing", param }))
      return Effect.map(Effect.flip(call), (failure) => ("fields" in failure ? failure.fields : undefined))
    }
    const query = { created_gte: 5, created_lte: 4 }
    for (const list of [
      provider.listCharges(account, query),
      provider.listPaymentIntents(account, query),
      provider.listCheckoutSessions(account, query),
      provider.listPayouts(account, query),
      provider.listRefunds(account, query),
      provider.listDisputes(account, query),
      provider.listCustomers(account, query),
      provider.listBalanceTransactions(account, query)
    ]) {
      expect(yield* fieldsOf(list, 400, "created[gte]")).toEqual(["created_gte"])
      expect(yield* fieldsOf(list, 400, "created[lte]")).toEqual(["created_lte"])
    }
    for (const [read, param] of [
      [provider.retrievePaymentIntent(account, "pi_1"), "intent"],
      [provider.retrieveCharge(account, "ch_1"), "charge"],
      [provider.retrievePayout(account, "po_1"), "payout"],
      [provider.retrieveRefund(account, "re_1"), "refund"],
      [provider.retrieveDispute(account, "du_1"), "dispute"],
      [provider.retrieveCustomer(account, "cus_1"), "customer"],
      [provider.retrieveSubscription(account, "sub_1"), "subscription_exposed_id"],
      [provider.cancelSubscription(account, "sub_1"), "subscription_exposed_id"]
    ] as const) {
      expect(yield* fieldsOf(read, 404, param), param).toEqual(["id"])
    }
  })
})

describe("repeats", () => {
  const failing = { transient: true, retryAfter: undefined }

  it.effect("come after pauses that grow, with jitter, within their bounds", function* () {
    for (let run = 0; run < 20; run += 1) {
      const at: Array<number> = []
      const attempt = Effect.zipRight(
        Effect.flatMap(TestClock.currentTimeMillis, (now) => Effect.sync(() => at.push(now))),
        Effect.fail(failing)
      )
      const fiber = yield* Effect.fork(Effect.flip(repeated(() => attempt, Duration.seconds(30))))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
      const [first = 0, second = 0, third = 0, ...more] = at
      expect(more).toEqual([])
      expect(second - first).toBeGreaterThanOrEqual(125)
      expect(second - first).toBeLessThanOrEqual(250)
      expect(third - second).toBeGreaterThanOrEqual(250)
      expect(third - second).toBeLessThanOrEqual(500)
    }
  })
})
