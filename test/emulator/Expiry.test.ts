import { Effect, TestClock } from "effect"
import { requestContext } from "../../src/emulator/api/Route.ts"
import { makeFaults } from "../../src/emulator/control/Faults.ts"
import { platformAccountId } from "../../src/emulator/Ids.ts"
import { expireOverdue } from "../../src/emulator/pages/HostedPage.ts"
import type { Session } from "../../src/emulator/Records.ts"
import { createPrice } from "../../src/emulator/resources/catalog/PriceCreation.ts"
import { createProduct } from "../../src/emulator/resources/catalog/Products.ts"
import { createSession } from "../../src/emulator/resources/checkout/SessionCreation.ts"
import { type Service, transactNow } from "../../src/emulator/Service.ts"
import { makeStore } from "../../src/emulator/store/Store.ts"
import { describe, expect, it } from "../harness/Tests.ts"

const account = "acct_0123456789abcdef"

const settings = { platformId: platformAccountId, secretKey: "sk_test_x", baseUrl: "http://127.0.0.1:1" }

const service = Effect.map(makeStore(undefined), (store): Service => ({ ...settings, store, faults: makeFaults() }))

const openSession = (at: Service) =>
  transactNow(at.store, (transaction, now) =>
    Effect.gen(function* () {
      const context = requestContext(at, transaction, { account, now })
      const product = yield* createProduct(context, { name: "a" })
      const price = yield* createPrice(context, product.id, { currency: "usd", unit_amount: 50 })
      const line_items = [{ price: price.id, quantity: 1 }]
      return yield* createSession(context, { mode: "payment", success_url: "https://shop.example", line_items })
    })
  )

const now = (at: Service, { id }: Session) =>
  at.store.transact((transaction) => {
    const objects = transaction.in(account)
    const types = objects.all("event").map(({ type }) => type)
    return Effect.succeed({
      status: objects.get("checkout.session", id)?.status,
      told: types.filter((type) => type === "checkout.session.expired").length
    })
  })

describe("a session whose time has run out", () => {
  it.scoped("is expired by the sweep, once, and not a second earlier", function* () {
    const at = yield* service
    const session = yield* openSession(at)
    yield* TestClock.adjust("86399 seconds")
    yield* expireOverdue(at)
    expect(yield* now(at, session)).toEqual({ status: "open", told: 0 })
    yield* TestClock.adjust("1 second")
    yield* expireOverdue(at)
    yield* expireOverdue(at)
    expect(yield* now(at, session)).toEqual({ status: "expired", told: 1 })
  })
})
