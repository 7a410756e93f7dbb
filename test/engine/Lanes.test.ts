import { expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { verifyWebhook } from "../../src/webhooks/index.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventuallyIs, eventuallyTrue } from "../harness/Eventually.ts"
import { onService, TestService, testSettings } from "../harness/TestService.ts"
import {
  atEndpoints,
  makeTenant,
  notification,
  notify,
  setActive,
  subscribe,
  type Tenant
} from "../inbound/Notifications.ts"

/** Attempts that hang are not repeated while a test runs. */
const settings = {
  delivery: { ...testSettings.delivery, timeout: Duration.minutes(5), concurrencyPerEndpoint: 2 }
}

const notifyAll = (tenant: Tenant, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => notify(notification(tenant.accountId)), { concurrency: 4 })

/** What waits for an endpoint, or is under way to it. */
const waiting = (endpointId: string) =>
  Effect.flatMap(
    TestService,
    ({ sql }) => sql<{ leased: boolean }>`
      SELECT lease IS NOT NULL AS leased FROM payments.delivery_queue WHERE endpoint_id = ${endpointId}`
  )

/** An endpoint with two deliveries in flight, which hang until `release`, and six that wait for them in its lane. */
const withLane = Effect.gen(function* () {
  const consumer = yield* makeConsumer
  const release = consumer.hold()
  const tenant = yield* makeTenant
  const endpoint = yield* subscribe(tenant, ["payment.succeeded"], consumer.url)
  yield* notifyAll(tenant, 2)
  yield* eventuallyTrue("two in flight", () => consumer.received.length === 2)
  yield* notifyAll(tenant, 6)
  const leases = (yield* waiting(endpoint.id)).map(({ leased }) => leased).toSorted()
  expect(leases).toEqual([...Array.from({ length: 6 }, () => false), true, true])
  return { consumer, endpoint, release, tenant }
})

/** That a delivery to another endpoint, stored now, arrives: the worker has gone on. */
const othersAreServed = Effect.gen(function* () {
  const consumer = yield* makeConsumer
  const tenant = yield* makeTenant
  yield* subscribe(tenant, ["payment.succeeded"], consumer.url)
  yield* notify(notification(tenant.accountId))
  yield* eventuallyTrue("another endpoint's delivery", () => consumer.received.length === 1)
})

onService(settings)("an endpoint whose deliveries wait in its lane", (it) => {
  it.scoped("gets nothing more once it is deleted", () =>
    Effect.gen(function* () {
      const { consumer, endpoint, release, tenant } = yield* withLane
      yield* atEndpoints(tenant, "DELETE", `/${endpoint.id}`)
      release()
      yield* eventuallyIs("an empty lane", waiting(endpoint.id), (all) => all.length === 0)
      yield* othersAreServed
      expect(consumer.received).toHaveLength(2)
    })
  )

  it.scoped("gets them although it is paused, and nothing new", () =>
    Effect.gen(function* () {
      const { consumer, endpoint, release, tenant } = yield* withLane
      yield* setActive(tenant, endpoint, false)
      yield* notifyAll(tenant, 2)
      release()
      yield* eventuallyIs("an empty lane", waiting(endpoint.id), (all) => all.length === 0)
      expect(consumer.received).toHaveLength(8)
    })
  )

  it.scoped("gets them signed by the secrets that they are bound to, although these were replaced", () =>
    Effect.gen(function* () {
      const { consumer, endpoint, release, tenant } = yield* withLane
      yield* atEndpoints(tenant, "POST", `/${endpoint.id}/rotate-secret`)
      release()
      yield* eventuallyIs("an empty lane", waiting(endpoint.id), (all) => all.length === 0)
      expect(consumer.received).toHaveLength(8)
      for (const { body, headers } of consumer.received) {
        const header = String(headers["service-signature"])
        verifyWebhook({ body, header, secret: endpoint.secret, organizationId: tenant.id, livemode: false })
      }
    })
  )

  it.scoped("gets each of them once, and what comes while they are sent", () =>
    Effect.gen(function* () {
      const { consumer, endpoint, release, tenant } = yield* withLane
      release()
      yield* notifyAll(tenant, 40)
      yield* eventuallyIs("an empty lane", waiting(endpoint.id), (all) => all.length === 0)
      expect(new Set(consumer.received.map(({ headers }) => headers["service-delivery-id"])).size).toBe(48)
      expect(consumer.received).toHaveLength(48)
    })
  )

  it.scoped("does not keep others waiting", () =>
    Effect.gen(function* () {
      yield* withLane
      yield* othersAreServed
    })
  )
})
