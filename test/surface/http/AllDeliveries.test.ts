import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { endDeliveries, storeDeliveries } from "../../destinations/deliveries/StoredDeliveries.ts"
import { paymentIntent } from "../../events/ProviderEvents.ts"
import { onSharedService } from "../../harness/TestService.ts"
import {
  accepted,
  asTenant,
  atEndpoints,
  makeTenant,
  notification,
  notify,
  subscribe,
  type Tenant
} from "../../inbound/Notifications.ts"

const rowsOf = (json: Record<string, unknown>) =>
  Array.from(Object(json["data"]), (row): Readonly<Record<string, unknown>> => Object(row))

const list = (tenant: Tenant, query: Readonly<Record<string, string | number>> = {}) => {
  const search = Object.entries(query).map(([name, value]) => `${name}=${value}`)
  return Effect.map(asTenant(tenant, "GET", `/deliveries?${search.join("&")}`), (answer) => {
    expect(answer.status, answer.text).toBe(200)
    return {
      ids: rowsOf(answer.json).map(({ id }) => String(id)),
      more: answer.json["has_more"],
      rows: rowsOf(answer.json)
    }
  })
}

/** A tenant with deliveries of every state to two endpoints and to one that was deleted; ids, newest first. */
const history = Effect.gen(function* () {
  const tenant = yield* makeTenant
  const [first, second, gone] = [yield* subscribe(tenant), yield* subscribe(tenant), yield* subscribe(tenant)]
  const store = (endpoint: { readonly id: string }, state: "queued" | "delivered" | "failed", createdAgo: number) =>
    Effect.map(
      storeDeliveries({
        organizationId: tenant.id,
        endpointId: endpoint.id,
        state,
        createdAgo,
        finishedAgo: createdAgo
      }),
      (ids) => ids.map((id) => ({ id, endpointId: endpoint.id, state, createdAgo }))
    )
  const stored = [
    ...(yield* store(first, "delivered", 4000)),
    ...(yield* store(gone, "failed", 3000)),
    ...(yield* store(second, "failed", 2000)),
    ...(yield* store(first, "queued", 1000)),
    ...(yield* store(second, "delivered", 500)),
    ...(yield* store(first, "failed", 10))
  ].toReversed()
  yield* atEndpoints(tenant, "DELETE", `/${gone.id}`)
  return { tenant, first, second, gone, stored }
})

onSharedService("the deliveries to all endpoints", (it) => {
  it.effect("are listed newest first in pages, deleted endpoints' included", function* () {
    const { stored, tenant } = yield* history
    const ids = stored.map(({ id }) => id)
    const all = yield* list(tenant)
    expect(all).toMatchObject({ ids, more: false })
    const met: Array<string> = []
    for (let page = yield* list(tenant, { limit: 4 }); ; ) {
      met.push(...page.ids)
      if (page.more !== true) break
      page = yield* list(tenant, { limit: 4, starting_after: String(page.ids.at(-1)) })
    }
    expect(met).toEqual(ids)
    // Each as its endpoint's own history shows it
    for (const row of all.rows) {
      const own = yield* asTenant(tenant, "GET", `/endpoints/${String(row["endpointId"])}/deliveries`)
      expect(rowsOf(own.json).find(({ id }) => id === row["id"])).toEqual(row)
    }
  })

  it.effect("are filtered by endpoint, state, type and time, and by all of these together", function* () {
    const { first, gone, second, stored, tenant } = yield* history
    const idsOf = (matches: (one: (typeof stored)[number]) => boolean) => stored.filter(matches).map(({ id }) => id)
    for (const { id } of [first, second, gone]) {
      expect((yield* list(tenant, { endpoint_id: id })).ids).toEqual(idsOf(({ endpointId }) => endpointId === id))
    }
    for (const state of ["queued", "delivered", "failed"] as const) {
      expect((yield* list(tenant, { state })).ids).toEqual(idsOf((one) => one.state === state))
      expect((yield* list(tenant, { state, type: "payment.succeeded" })).ids).toEqual(
        idsOf((one) => one.state === state)
      )
      expect((yield* list(tenant, { state, type: "payment.failed" })).ids).toEqual([])
      expect((yield* list(tenant, { state, endpoint_id: first.id })).ids).toEqual(
        idsOf((one) => one.state === state && one.endpointId === first.id)
      )
    }
    const now = Math.floor(Date.now() / 1000)
    const middle = { created_gte: now - 2500, created_lte: now - 400 }
    const isInTheMiddle = ({ createdAgo }: (typeof stored)[number]) => createdAgo <= 2000 && createdAgo >= 500
    expect((yield* list(tenant, middle)).ids).toEqual(idsOf(isInTheMiddle))
    expect((yield* list(tenant, { ...middle, state: "failed" })).ids).toEqual(
      idsOf((one) => isInTheMiddle(one) && one.state === "failed")
    )
    expect((yield* list(tenant, { created_gte: now + 3600 })).ids).toEqual([])
    const failures = idsOf(({ state }) => state === "failed")
    const page = yield* list(tenant, { state: "failed", limit: 1 })
    expect(page).toMatchObject({ ids: failures.slice(0, 1), more: true })
    expect((yield* list(tenant, { state: "failed", starting_after: String(failures[0]) })).ids).toEqual(
      failures.slice(1)
    )
  })

  it.effect("are found by their event, at all of its endpoints", function* () {
    const tenant = yield* makeTenant
    const [one, other] = [yield* subscribe(tenant), yield* subscribe(tenant)]
    yield* accepted(notify(notification(tenant.accountId, { object: { ...paymentIntent, id: "pi_looked_for" } })))
    yield* accepted(notify(notification(tenant.accountId, { object: { ...paymentIntent, id: "pi_other" } })))
    const events = rowsOf((yield* asTenant(tenant, "GET", "/events?payment_id=pi_looked_for")).json)
    const eventId = String(events[0]?.["id"])
    const its = yield* list(tenant, { event_id: eventId })
    expect(its.rows.map(({ endpointId }) => endpointId).toSorted()).toEqual([one.id, other.id].toSorted())
    expect(new Set(its.rows.map((row) => row["eventId"]))).toEqual(new Set([eventId]))
    expect((yield* list(tenant, { event_id: eventId, endpoint_id: one.id })).rows).toMatchObject([
      { endpointId: one.id, state: "queued" }
    ])
    yield* endDeliveries([String(its.ids[0])], "failed")
    expect((yield* list(tenant, { event_id: eventId, state: "failed" })).ids).toEqual(its.ids.slice(0, 1))
    expect((yield* list(tenant, { event_id: eventId, type: "payment.failed" })).ids).toEqual([])
    const page = yield* list(tenant, { event_id: eventId, limit: 1 })
    expect(page).toMatchObject({ ids: its.ids.slice(0, 1), more: true })
    expect((yield* list(tenant, { event_id: eventId, starting_after: String(its.ids[0]) })).ids).toEqual(
      its.ids.slice(1)
    )
    // Nobody else finds it, and what is not there has no deliveries
    expect((yield* list(yield* makeTenant, { event_id: eventId })).ids).toEqual([])
    expect((yield* list(tenant, { event_id: `svc_evt_${"0".repeat(64)}` })).ids).toEqual([])
    expect((yield* list(tenant, { endpoint_id: randomUUID() })).ids).toEqual([])
  })
})
