import { Effect } from "effect"
import { Stripe } from "stripe"
import { describe, expect } from "../harness/Tests.ts"
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
