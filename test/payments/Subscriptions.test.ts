import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { subscribe, typesTo } from "../inbound/Notifications.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { dataOf, type Json, newTenant, newTenantWithProduct, part, payAt } from "./ConnectedTenant.ts"

const subscribedTenant = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const priceId = yield* makePrice(service, tenant, { recurring: { interval: "month" } })
  const { json } = yield* pay(service, { ...tenant, priceId }, "subscription")
  const id = String(json["subscription"])
  const cancel = (key: string = randomUUID(), of = id) =>
    tenant.send("POST", `/subscriptions/${of}/cancel`, { headers: { "idempotency-key": key } })
  const idsOf = (query: string) =>
    Effect.map(tenant.get(`/subscriptions?${query}`), (answer) => {
      expect(answer.status, answer.text).toBe(200)
      return dataOf(answer.json).map((subscription) => subscription["id"])
    })
  return { tenant, id, cancel, idsOf }
})

onSharedService("subscriptions", (it) => {
  it.effect("have all of their items wherever they are answered, of which the provider shows ten", function* () {
    const { product, tenant } = yield* newTenantWithProduct
    const prices = yield* Effect.forEach(Array.from({ length: 12 }), (_, index) =>
      Effect.map(
        tenant.post("/prices", {
          product,
          currency: "brl",
          unit_amount: 100 + index,
          recurring: { interval: "month" }
        }),
        idOf
      )
    )
    const session = yield* tenant.post("/checkout/sessions", {
      mode: "subscription",
      line_items: prices.map((price) => ({ price, quantity: 1 }))
    })
    yield* payAt(session.json["url"])
    const { subscription: id } = (yield* tenant.get(`/checkout/sessions/${idOf(session)}`)).json
    const path = `/subscriptions/${id}`
    const atProvider = yield* tenant.atProvider(path)
    expect([dataOf(part(atProvider, "items")).length, part(atProvider, "items")["has_more"]]).toEqual([10, true])
    const pricesOf = (subscription: Json | undefined) => {
      expect(part(subscription, "items")["has_more"]).toBe(false)
      return dataOf(part(subscription, "items")).map((item) => part(item, "price")["id"])
    }
    const all = new Set(prices)
    const changed = yield* tenant.patch(path, { cancel_at_period_end: true })
    const read = yield* tenant.get(path)
    const listed = yield* tenant.get("/subscriptions")
    const canceled = yield* tenant.send("POST", `${path}/cancel`, { headers: { "idempotency-key": randomUUID() } })
    for (const one of [changed.json, read.json, dataOf(listed.json)[0], canceled.json]) {
      expect(new Set(pricesOf(one))).toEqual(all)
    }
  })

  it.effect("are read and listed; canceled ones only where a status asks for them", function* () {
    const { cancel, id, idsOf, tenant } = yield* subscribedTenant
    expect((yield* tenant.get(`/subscriptions/${id}`)).json).toMatchObject({ id, status: "active" })
    expect(yield* idsOf("")).toEqual([id])
    expect(yield* idsOf("status=active")).toEqual([id])
    expect(yield* idsOf("status=canceled")).toEqual([])
    const canceled = yield* cancel()
    expect(canceled.status, canceled.text).toBe(200)
    expect(canceled.json).toMatchObject({ id, status: "canceled" })
    expect((yield* cancel()).json).toMatchObject({ id, status: "canceled" })
    expect(yield* idsOf("")).toEqual([])
    expect(yield* idsOf("status=all")).toEqual([id])
    expect(yield* idsOf("status=canceled")).toEqual([id])
    expect((yield* tenant.get(`/subscriptions/${id}`)).json).toMatchObject({ status: "canceled" })
    expect(yield* tenant.audited).toContain(`subscription.canceled ${id}`)
  })

  it.effect("whose cancellation's answer is lost are canceled all the same", function* () {
    const { emulator } = yield* TestService
    const { cancel, tenant } = yield* subscribedTenant
    yield* emulator.addFault({ fault: "lost_answer", account: tenant.accountId, method: "DELETE", times: 1 })
    const answer = yield* cancel()
    expect([answer.status, answer.json["status"]], answer.text).toEqual([200, "canceled"])
  })

  it.effect("are canceled at the end of their period, the event's time, which can be undone before", function* () {
    const { emulator, journal } = yield* TestService
    const { id, idsOf, tenant } = yield* subscribedTenant
    const owner = { ...tenant, key: yield* tenant.keyOf(["*", "webhook-endpoints:*"]) }
    const endpoint = yield* subscribe(owner, ["subscription.canceled", "subscription.renewed"])
    const ends = (cancel_at_period_end: boolean) => tenant.patch(`/subscriptions/${id}`, { cancel_at_period_end })
    const scheduled = yield* ends(true)
    expect(scheduled.status, scheduled.text).toBe(200)
    const { current_period_end } = part(scheduled.json, "items", "data", 0)
    expect(scheduled.json).toMatchObject({
      status: "active",
      cancel_at_period_end: true,
      cancel_at: current_period_end
    })
    expect((yield* ends(false)).json).toMatchObject({
      cancel_at_period_end: false,
      cancel_at: null,
      canceled_at: null
    })
    const renew = emulator.renewSubscription({ account: tenant.accountId, id, outcome: "paid" })
    yield* renew
    expect((yield* ends(true)).json).toMatchObject({ status: "active", cancel_at_period_end: true })
    expect(yield* idsOf("status=active")).toEqual([id])
    yield* renew
    expect(yield* idsOf("status=canceled")).toEqual([id])
    yield* eventually(
      "the event of the end",
      Effect.map(typesTo(endpoint.id), (types) =>
        types.includes("subscription.canceled") ? Option.some(types) : Option.none()
      )
    )
    yield* eventuallyTrue("all notifications", () => !journal.isPending([tenant.accountId]))
    expect(yield* typesTo(endpoint.id)).toEqual(["subscription.canceled", "subscription.renewed"])
    const outcomes = yield* tenant.sql<{ outcome: string }>`
        SELECT outcome FROM payments.receipts
        WHERE account_id = ${tenant.accountId} AND type = 'customer.subscription.updated'`
    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(["ignored"]))
    expect((yield* tenant.audited).filter((entry) => entry === `subscription.updated ${id}`)).toHaveLength(3)
  })

  it.effect("that have ended take no date of their end", function* () {
    const { cancel, id, tenant } = yield* subscribedTenant
    const path = `/subscriptions/${id}`
    yield* cancel()
    expectFailure(
      yield* tenant.patch(path, { cancel_at_period_end: false }),
      refusedWith(422, "provider_invalid_request_error", ["id"])
    )
    expectFailure(
      yield* tenant.send("PATCH", path, { body: { cancel_at_period_end: true } }),
      refusedWith(422, "validation_failed", ["idempotency-key"])
    )
  })

  it.effect("need an idempotency key to be canceled with", function* () {
    const { id, idsOf, tenant } = yield* subscribedTenant
    expectFailure(
      yield* tenant.send("POST", `/subscriptions/${id}/cancel`),
      refusedWith(422, "validation_failed", ["idempotency-key"])
    )
    expect(yield* idsOf("status=active")).toEqual([id])
  })
})
