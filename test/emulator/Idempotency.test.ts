import { Deferred, Effect, Fiber } from "effect"
import { Stripe } from "stripe"
import { internalError, refuse } from "../../src/emulator/ProviderError.ts"
import {
  type Answer,
  forgetOldAnswers,
  type KeyedRequest,
  makeIdempotency
} from "../../src/emulator/store/Idempotency.ts"
import { makeStore } from "../../src/emulator/store/Store.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { call, onEmulator, raw, refusal, said, sdk, somePrice } from "./Harness.ts"

describe("a repeated request with the same idempotency key", () => {
  onEmulator("gets the first answer byte for byte; nothing is done twice", function* ({ account, emulator, stripe }) {
    const send = (body: string, key = "key-1") =>
      raw(emulator.url, "/v1/products", {
        method: "POST",
        headers: {
          "stripe-account": account,
          "idempotency-key": key,
          "content-type": "application/x-www-form-urlencoded"
        },
        body
      })
    const first = yield* send("name=a&metadata[x]=1&metadata[y]=2")
    expect(first.headers.get("idempotent-replayed")).toBeNull()
    const again = yield* send("metadata[y]=2&name=a&metadata[x]=1")
    expect(again.text).toBe(first.text)
    expect(again.status).toBe(200)
    expect(again.headers.get("idempotent-replayed")).toBe("true")
    expect(again.headers.get("original-request")).toBe(first.headers.get("request-id"))
    expect(again.headers.get("request-id")).not.toBe(first.headers.get("request-id"))
    expect((yield* call(() => stripe.products.list())).data).toHaveLength(1)
    expect((yield* call(() => stripe.events.list())).data).toHaveLength(1)
    yield* send("name=a", "key-2")
    expect((yield* call(() => stripe.products.list())).data).toHaveLength(2)
  })

  onEmulator("is an idempotency_error with other parameters or at another endpoint", function* ({ stripe }) {
    const options = { idempotencyKey: "key-1" }
    const { id } = yield* call(() => stripe.products.create({ name: "a" }, options))
    const error = yield* refusal(() => stripe.products.create({ name: "b" }, options))
    expect(error).toBeInstanceOf(Stripe.errors.StripeIdempotencyError)
    expect(error.statusCode).toBe(400)
    expect(yield* said(() => stripe.products.create({ name: "a", expand: ["default_price"] }, options))).toMatchObject({
      rawType: "idempotency_error"
    })
    expect(yield* said(() => stripe.products.update(id, { name: "a" }, options))).toMatchObject({
      statusCode: 400,
      rawType: "idempotency_error"
    })
    expect((yield* call(() => stripe.products.create({ name: "a" }, options))).id).toBe(id)
  })

  onEmulator("is another request in another account's scope", function* ({ emulator, stripe }) {
    const other = sdk(emulator.url, yield* emulator.ensureAccount())
    const options = { idempotencyKey: "key-1" }
    const mine = yield* call(() => stripe.products.create({ name: "a" }, options))
    const theirs = yield* call(() => other.products.create({ name: "b" }, options))
    expect(theirs.id).not.toBe(mine.id)
  })

  onEmulator("repeats a refusal of the operation, but not one of its parameters", function* ({ stripe }) {
    const options = { idempotencyKey: "key-1" }
    expect(yield* said(() => stripe.rawRequest("POST", "/v1/products", { nom: "a" }, options))).toMatchObject({
      code: "parameter_unknown"
    })
    yield* call(() => stripe.products.create({ name: "a" }, options))

    const price = { currency: "usd", unit_amount: 1, product: "later" }
    const first = yield* refusal(() => stripe.prices.create(price, { idempotencyKey: "key-2" }))
    expect(first.code).toBe("resource_missing")
    yield* call(() => stripe.products.create({ id: "later", name: "b" }))
    const second = yield* refusal(() => stripe.prices.create(price, { idempotencyKey: "key-2" }))
    expect(second.code).toBe("resource_missing")
    expect(second.headers?.["idempotent-replayed"]).toBe("true")
    yield* call(() => stripe.prices.create(price, { idempotencyKey: "key-3" }))
  })

  onEmulator("does nothing twice when many arrive at once", function* ({ stripe }) {
    const { product } = yield* somePrice(stripe)
    const outcomes = yield* Effect.all(
      Array.from({ length: 20 }, () =>
        Effect.promise(() =>
          stripe.prices
            .create({ currency: "usd", unit_amount: 1, product: String(product) }, { idempotencyKey: "key-1" })
            .then(
              ({ id }) => id,
              (error) => (error instanceof Stripe.errors.StripeError ? error.code : "other")
            )
        )
      ),
      { concurrency: "unbounded" }
    )
    const ids = new Set(outcomes.filter((outcome) => outcome !== "idempotency_key_in_use"))
    expect(ids.size).toBe(1)
    expect((yield* call(() => stripe.prices.list())).data).toHaveLength(2)
  })

  onEmulator("needs a key of at most 255 characters", function* ({ stripe }) {
    yield* call(() => stripe.products.create({ name: "a" }, { idempotencyKey: "k".repeat(255) }))
    expect(
      (yield* said(() => stripe.products.create({ name: "a" }, { idempotencyKey: "k".repeat(256) }))).statusCode
    ).toBe(400)
  })
})

const keyed: KeyedRequest = {
  scope: "acct_a",
  key: "k",
  method: "POST",
  path: "/v1/x",
  parameters: {},
  requestId: "req_1",
  now: 1_000_000
}
const done: Answer = { status: 200, body: "{}" }

describe("the guard", () => {
  it.scoped("answers 409 idempotency_key_in_use as long as the first request is under way", function* () {
    const { run } = makeIdempotency(yield* makeStore(undefined))
    const began = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const first = yield* Effect.fork(
      run(keyed, () => Deferred.succeed(began, undefined).pipe(Effect.zipRight(Deferred.await(goOn)), Effect.as(done)))
    )
    yield* Deferred.await(began)
    const error = yield* Effect.flip(run(keyed, () => Effect.die("must not run")))
    expect(error).toMatchObject({ status: 409, code: "idempotency_key_in_use" })
    yield* Deferred.succeed(goOn, undefined)
    expect(yield* Fiber.join(first)).toEqual(done)
    expect(yield* run(keyed, () => Effect.die("must not run"))).toEqual({ ...done, replayOf: "req_1" })
  })

  it.scoped("forgets a server error, so that the request can be tried again", function* () {
    const { run } = makeIdempotency(yield* makeStore(undefined))
    yield* Effect.flip(run(keyed, () => Effect.fail(internalError)))
    expect(yield* run(keyed, () => Effect.succeed(done))).toEqual(done)
  })

  it.scoped("keeps nothing of what a refused operation wrote", function* () {
    const store = yield* makeStore(undefined)
    const { run } = makeIdempotency(store)
    const refused = yield* run(keyed, (transaction) => {
      transaction.in("acct_a").put("webhook", "w", { url: "x" })
      return Effect.fail(refuse({ message: "no" }))
    })
    expect(refused.status).toBe(400)
    expect(
      yield* store.transact((transaction) => Effect.succeed(transaction.in("acct_a").get("webhook", "w")))
    ).toBeUndefined()
  })

  it.scoped("holds an answer for 24 hours", function* () {
    const store = yield* makeStore(undefined)
    const { run } = makeIdempotency(store)
    yield* run(keyed, () => Effect.succeed(done))
    const day = 24 * 60 * 60
    const late = { ...keyed, now: keyed.now + day - 1 }
    expect((yield* run(late, () => Effect.succeed({ status: 200, body: "new" }))).body).toBe("{}")
    const later = { ...keyed, now: keyed.now + day }
    expect((yield* run(later, () => Effect.succeed({ status: 200, body: "new" }))).body).toBe("new")
    yield* forgetOldAnswers(store)
    expect(yield* store.transact((transaction) => Effect.succeed(transaction.in("acct_a").all("answer").length))).toBe(
      1
    )
  })
})
