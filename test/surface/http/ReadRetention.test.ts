import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { inDatabase, onSharedService, TestService } from "../../harness/TestService.ts"
import { accepted, asTenant, atEndpoints, makeSubscriber, notification, notify } from "../../inbound/Notifications.ts"

interface Stored {
  readonly id: string
  readonly eventId: string
}

/** A tenant whose only event was received days ago. Its day's table is still there, as if others still used it. */
const makeWithEvent = Effect.fnUntraced(function* (daysAgo: number) {
  const { tenant, ...endpoint } = yield* makeSubscriber()
  yield* accepted(notify(notification(tenant.accountId)))
  yield* inDatabase`
    UPDATE payments.events SET created_at = now() - ${daysAgo} * interval '1 day' WHERE organization_id = ${tenant.id}`
  yield* inDatabase`
    UPDATE payments.deliveries SET created_at = now() - ${daysAgo} * interval '1 day'
    WHERE organization_id = ${tenant.id}`
  const [delivery] = yield* inDatabase<Stored>`
    SELECT d.id, e.public_id AS "eventId" FROM payments.deliveries d JOIN payments.events e
      ON e.organization_id = d.organization_id AND e.id = d.event_id
    WHERE d.organization_id = ${tenant.id}`
  if (delivery === undefined) return yield* Effect.dieMessage("The notification has led to no delivery")
  return { tenant, endpointId: endpoint.id, ...delivery }
})

/** As if the delivery's last attempt had been made days ago. */
const end = ({ id }: Stored, state: "delivered" | "failed", daysAgo: number) =>
  Effect.flatMap(TestService, ({ sql }) =>
    Effect.zipRight(
      sql`DELETE FROM payments.delivery_queue WHERE id = ${id}`,
      sql`
        UPDATE payments.deliveries SET state = ${state}, finished_at = now() - ${daysAgo} * interval '1 day'
        WHERE id = ${id}`
    )
  )

const listsOf = ({ endpointId, eventId }: { readonly endpointId: string; readonly eventId: string }, state: string) => [
  "/deliveries",
  `/deliveries?state=${state}`,
  `/deliveries?state=${state}&type=payment.succeeded`,
  "/deliveries?type=payment.succeeded",
  `/deliveries?event_id=${eventId}`,
  `/deliveries?endpoint_id=${endpointId}`,
  "/deliveries?created_gte=1",
  `/endpoints/${endpointId}/deliveries`,
  `/endpoints/${endpointId}/deliveries?state=${state}`
]

const eventLists = ["/events", "/events?type=payment.succeeded", "/events?created_gte=1"]

onSharedService("what has ended longer ago than it is kept", (it) => {
  for (const state of ["delivered", "failed"] as const) {
    it.effect(`is in no answer if it was ${state}, whatever its day's table still holds`, function* () {
      const stored = yield* makeWithEvent(31)
      const { eventId, id, tenant } = stored
      yield* end(stored, state, 30.01)
      for (const path of [...listsOf(stored, state), ...eventLists]) {
        const { json, status } = yield* asTenant(tenant, "GET", path)
        expect([path, status, json]).toEqual([path, 200, { data: [], has_more: false }])
      }
      for (const [path, method] of [
        [`/deliveries/${id}`, "GET"],
        [`/deliveries/${id}/retry`, "POST"],
        [`/events/${eventId}`, "GET"]
      ] as const) {
        const answer = yield* asTenant(tenant, method, path)
        expect([path, answer.status, answer.json["code"]]).toEqual([path, 404, "resource_not_found"])
      }
    })

    it.effect(`is there until then if it was ${state}, with its event, however old that is`, function* () {
      const stored = yield* makeWithEvent(33)
      const { eventId, id, tenant } = stored
      yield* end(stored, state, 29.99)
      for (const path of listsOf(stored, state)) {
        expect((yield* asTenant(tenant, "GET", path)).json, path).toMatchObject({ data: [{ id, state }] })
      }
      expect((yield* asTenant(tenant, "GET", `/deliveries/${id}`)).json).toMatchObject({ id, event: { id: eventId } })
      expect((yield* asTenant(tenant, "GET", `/events/${eventId}`)).json).toMatchObject({
        id: eventId,
        deliveries: [{ id }]
      })
    })
  }

  it.effect("stays as long as it waits", function* () {
    const stored = yield* makeWithEvent(40)
    for (const path of listsOf(stored, "queued")) {
      expect((yield* asTenant(stored.tenant, "GET", path)).json, path).toMatchObject({ data: [{ id: stored.id }] })
    }
    expect((yield* asTenant(stored.tenant, "GET", `/events/${stored.eventId}`)).status).toBe(200)
  })

  it.effect("is no event that was missed either", function* () {
    const { id, tenant } = yield* makeSubscriber()
    yield* atEndpoints(tenant, "PATCH", `/${id}`, { active: false })
    yield* accepted(notify(notification(tenant.accountId)))
    expect((yield* asTenant(tenant, "GET", `/endpoints/${id}/skipped`)).json["data"]).toHaveLength(1)
    yield* inDatabase`
      UPDATE payments.skipped_events SET created_at = now() - interval '30.01 days' WHERE organization_id = ${tenant.id}`
    expect((yield* asTenant(tenant, "GET", `/endpoints/${id}/skipped`)).json).toEqual({ data: [], has_more: false })
  })
})
