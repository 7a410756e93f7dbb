import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Arbitrary, Effect, FastCheck, Schema } from "effect"
import { CreateRefund } from "../../src/payments/payments/Api.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { dataOf, newTenant } from "./ConnectedTenant.ts"

const paidTenant = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const priceId = yield* makePrice(service, tenant)
  const payment = Effect.map(pay(service, { ...tenant, priceId }), ({ json }) => String(json["payment_intent"]))
  const payment_intent = yield* payment
  const charge = String((yield* tenant.get(`/payment-intents/${payment_intent}`)).json["latest_charge"])
  const refunds = Effect.map(tenant.atProvider("/refunds?limit=100"), dataOf)
  return { tenant, payment, payment_intent, charge, refunds }
})

onSharedService("a refund", (it) => {
  it.effect("pays a part back, then the rest, and is on record", function* () {
    const { charge, payment_intent, refunds, tenant } = yield* paidTenant
    const first = yield* tenant.post("/refunds", {
      payment_intent,
      amount: 400,
      reason: "requested_by_customer",
      metadata: { ticket: "T-1" }
    })
    expect(first.status, first.text).toBe(200)
    expect(first.json).toMatchObject({
      object: "refund",
      amount: 400,
      currency: "brl",
      charge,
      payment_intent,
      reason: "requested_by_customer",
      metadata: { ticket: "T-1" }
    })
    const rest = yield* tenant.post("/refunds", { charge })
    expect(rest.json).toMatchObject({ amount: 1100, charge })
    expect((yield* tenant.get(`/charges/${charge}`)).json).toMatchObject({ amount_refunded: 1500, refunded: true })
    expect(yield* refunds).toHaveLength(2)
    expect((yield* tenant.audited).filter((entry) => entry.startsWith("refund."))).toEqual([
      `refund.created ${idOf(first)}`,
      `refund.created ${idOf(rest)}`
    ])
  })

  it.effect("is read, and listed by its payment, by its charge and by time, in pages, newest first", function* () {
    const { charge, payment, payment_intent, tenant } = yield* paidTenant
    const made = []
    for (const amount of [100, 200, 300]) {
      made.unshift(idOf(yield* tenant.post("/refunds", { payment_intent, amount })))
    }
    const idsOf = (query: string) =>
      Effect.map(tenant.get(`/refunds?${query}`), (answer) => {
        expect(answer.status, answer.text).toBe(200)
        return dataOf(answer.json).map(({ id }) => id)
      })
    expect(yield* idsOf("")).toEqual(made)
    expect(yield* idsOf(`payment_intent=${payment_intent}&charge=${charge}`)).toEqual(made)
    expect(yield* idsOf(`payment_intent=${yield* payment}`)).toEqual([])
    expect(yield* idsOf("created_lte=1000000000")).toEqual([])
    const page = yield* tenant.get("/refunds?limit=2")
    expect([page.json["has_more"], dataOf(page.json).map(({ id }) => id)]).toEqual([true, made.slice(0, 2)])
    expect(yield* idsOf(`limit=2&starting_after=${made[1]}`)).toEqual(made.slice(2))
    const refund = (yield* tenant.get(`/refunds/${made[0]}`)).json
    expect(refund).toMatchObject({ id: made[0], object: "refund", amount: 300, charge, payment_intent })
  })

  it.effect("whose answer is lost is asked for again under the same key, and made once", function* () {
    const { emulator } = yield* TestService
    const { payment_intent, refunds, tenant } = yield* paidTenant
    yield* emulator.addFault({ fault: "lost_answer", account: tenant.accountId, path: "/v1/refunds", times: 1 })
    const answer = yield* tenant.post("/refunds", { payment_intent, amount: 100 })
    expect(answer.status, answer.text).toBe(200)
    expect((yield* refunds).map(({ id }) => id)).toEqual([idOf(answer)])
  })

  it.effect("whose answers are all lost is 502, and completed by the caller's repeat", function* () {
    const { payment_intent, refunds, tenant } = yield* paidTenant
    const key = randomUUID()
    const body = { payment_intent, amount: 100 }
    const lost = yield* tenant.during({ fault: "lost_answer", path: "/v1/refunds" }, tenant.post("/refunds", body, key))
    expectFailure(lost, { status: 502, code: "provider_unavailable", fields: [] })
    const answer = yield* tenant.post("/refunds", body, key)
    expect(answer.status, answer.text).toBe(200)
    expect((yield* refunds).map(({ id }) => id)).toEqual([idOf(answer)])
  })

  it.effect("whose failure the provider keeps under its key says so; only a new key makes it again", function* () {
    const { emulator } = yield* TestService
    const { payment_intent, refunds, tenant } = yield* paidTenant
    const key = randomUUID()
    const body = { payment_intent, amount: 100 }
    yield* emulator.addFault({ fault: "kept_500", account: tenant.accountId, path: "/v1/refunds", method: "POST" })
    for (const _ of [1, 2, 3]) {
      const kept = yield* tenant.post("/refunds", body, key)
      expectFailure(kept, { status: 502, code: "provider_outcome_unknown", fields: [] })
      expect(kept.json["error"]).toMatch(/whether its object exists .* new idempotency key/)
    }
    // It was made after all: who looks sees it, and need not send it again
    expect(dataOf((yield* tenant.get(`/refunds?payment_intent=${payment_intent}`)).json)).toHaveLength(1)
    expectFailure(
      yield* tenant.post("/refunds", { ...body, amount: 101 }, key),
      refusedWith(409, "idempotency_key_reused")
    )
    expect((yield* tenant.post("/refunds", body)).status).toBe(200)
    expect(yield* refunds).toHaveLength(2)
  })

  it.effect("pays back more than eight digits where the currency has them", function* () {
    const service = yield* TestService
    const tenant = yield* newTenant
    const priceId = yield* makePrice(service, tenant, { currency: "idr", unit_amount: 150_000_000 })
    const { json } = yield* pay(service, { ...tenant, priceId })
    expect(json).toMatchObject({ currency: "idr", amount_total: 150_000_000 })
    const refund = yield* tenant.post("/refunds", { payment_intent: json["payment_intent"], amount: 120_000_000 })
    expect(refund.json, refund.text).toMatchObject({ amount: 120_000_000, currency: "idr" })
  })

  it.effect("of more than was paid, or of what was paid back, is refused by its amount and code", function* () {
    const { charge, payment_intent, refunds, tenant } = yield* paidTenant
    expectFailure(
      yield* tenant.post("/refunds", { payment_intent, amount: 1501 }),
      refusedWith(422, "provider_invalid_request_error", ["amount"])
    )
    expect(yield* refunds).toEqual([])
    yield* tenant.post("/refunds", { charge })
    expectFailure(yield* tenant.post("/refunds", { charge }), refusedWith(422, "provider_charge_already_refunded"))
    expect(yield* refunds).toHaveLength(1)
  })

  it.effect("names exactly one payment, and one of this tenant's", function* () {
    const { charge, payment_intent, refunds, tenant } = yield* paidTenant
    const other = yield* paidTenant
    const refused = (body: unknown, code: string, fields: ReadonlyArray<string>) =>
      Effect.map(tenant.post("/refunds", body), (answer) => expectFailure(answer, { status: 422, code, fields }))
    yield* refused({}, "validation_failed", ["payment_intent"])
    yield* refused({ amount: 5 }, "validation_failed", ["payment_intent"])
    yield* refused({ payment_intent, charge }, "validation_failed", ["charge"])
    yield* refused({ payment_intent: other.payment_intent }, "provider_resource_missing", ["payment_intent"])
    yield* refused({ charge: other.charge }, "provider_resource_missing", ["charge"])
    expect([...(yield* refunds), ...(yield* other.refunds)]).toEqual([])
  })

  it.effect("of any body that the contract admits is made, or refused by name: never a failure", function* () {
    const { charge, payment_intent, tenant } = yield* paidTenant
    for (const [index, body] of FastCheck.sample(Arbitrary.make(Schema.typeSchema(CreateRefund)), 40).entries()) {
      // Half of them about the payment that there is
      const known = body.charge === undefined ? { ...body, payment_intent } : { ...body, charge }
      const answer = yield* tenant.post("/refunds", index % 2 === 0 ? known : body)
      expect([200, 422], `${JSON.stringify(body)} ${answer.text}`).toContain(answer.status)
    }
  })

  it.effect("needs an idempotency key", function* () {
    const { payment_intent, refunds, tenant } = yield* paidTenant
    const answer = yield* tenant.send("POST", "/refunds", { body: { payment_intent } })
    expectFailure(answer, { status: 422, code: "validation_failed", fields: ["idempotency-key"] })
    expect(yield* refunds).toEqual([])
  })
})
