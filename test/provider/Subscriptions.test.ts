import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { makePrice, pay } from "../http/Payments.ts"
import { expectFailure } from "../http/Refusals.ts"
import { dataOf, newTenant } from "./ConnectedTenant.ts"

/** A tenant with a subscription that a payer has paid for. */
const subscribedTenant = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const owner = { organizationId: tenant.id, key: tenant.key }
  const priceId = yield* makePrice(service, owner, { recurring: { interval: "month" } })
  const { json } = yield* pay(service, { ...owner, priceId }, "subscription")
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
  it.effect("are read and listed; canceled ones only where a status asks for them", () =>
    Effect.gen(function* () {
      const { cancel, id, idsOf, tenant } = yield* subscribedTenant
      expect((yield* tenant.get(`/subscriptions/${id}`)).json).toMatchObject({ id, status: "active" })
      expect(yield* idsOf("")).toEqual([id])
      expect(yield* idsOf("status=active")).toEqual([id])
      expect(yield* idsOf("status=canceled")).toEqual([])
      const canceled = yield* cancel()
      expect(canceled.status, canceled.text).toBe(200)
      expect(canceled.json).toMatchObject({ id, status: "canceled" })
      expect(yield* idsOf("")).toEqual([])
      expect(yield* idsOf("status=all")).toEqual([id])
      expect(yield* idsOf("status=canceled")).toEqual([id])
      expect((yield* tenant.get(`/subscriptions/${id}`)).json).toMatchObject({ status: "canceled" })
      expect(yield* tenant.audited).toContain(`subscription.canceled ${id}`)
    })
  )

  it.effect("are canceled once: the same key replays, another key answers the canceled one", () =>
    Effect.gen(function* () {
      const { cancel, id } = yield* subscribedTenant
      const key = randomUUID()
      const first = yield* cancel(key)
      const again = yield* cancel(key)
      expect([again.status, again.text]).toEqual([200, first.text])
      const other = yield* cancel()
      expect([other.status, other.json["status"]]).toEqual([200, "canceled"])
      expectFailure(yield* cancel(key, `${id}x`), { status: 409, code: "idempotency_key_reused" })
    })
  )

  it.effect("whose cancellation's answer is lost are canceled all the same", () =>
    Effect.gen(function* () {
      const { emulator } = yield* TestService
      const { cancel, tenant } = yield* subscribedTenant
      yield* emulator.addFault({ fault: "lost_answer", account: tenant.accountId, method: "DELETE", times: 1 })
      const answer = yield* cancel()
      expect([answer.status, answer.json["status"]], answer.text).toEqual([200, "canceled"])
    })
  )

  it.effect("that are unknown, or another tenant's, are not found by their id", () =>
    Effect.gen(function* () {
      const { cancel, idsOf, tenant } = yield* subscribedTenant
      const other = yield* subscribedTenant
      const missing = { status: 404, code: "provider_resource_missing", fields: ["id"] }
      for (const id of ["sub_unknown", other.id]) {
        expectFailure(yield* tenant.get(`/subscriptions/${id}`), missing)
        expectFailure(yield* cancel(randomUUID(), id), missing)
      }
      expect(yield* other.idsOf("status=active")).toEqual([other.id])
      expect(yield* idsOf("status=active")).toHaveLength(1)
    })
  )

  it.effect("need a key to be canceled with, of a key's own permission", () =>
    Effect.gen(function* () {
      const { id, idsOf, tenant } = yield* subscribedTenant
      expectFailure(yield* tenant.send("POST", `/subscriptions/${id}/cancel`), {
        status: 422,
        code: "validation_failed",
        fields: ["idempotency-key"]
      })
      const key = yield* tenant.keyOf(["payments:write", "payments:read"])
      const headers = { "idempotency-key": randomUUID() }
      expectFailure(yield* tenant.send("POST", `/subscriptions/${id}/cancel`, { key, headers }), {
        status: 403,
        code: "permission_denied"
      })
      expect(yield* idsOf("status=active")).toEqual([id])
    })
  )
})
