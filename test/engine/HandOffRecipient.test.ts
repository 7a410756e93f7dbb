import { expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventuallyIs, eventuallyTrue } from "../harness/Eventually.ts"
import { inDatabase, onService, TestService, testSettings } from "../harness/TestService.ts"
import { makeTenant, notification, notify, subscribe } from "../inbound/Notifications.ts"
import { deliveriesOf } from "./Sending.ts"

/** An endpoint whose account has seen its first payment: that one is stored by a statement of its own. */
const subscribed = Effect.fnUntraced(function* (url: string) {
  const tenant = yield* makeTenant
  yield* inDatabase`UPDATE payments.provider_accounts SET had_payments_before = true WHERE account_id = ${tenant.accountId}`
  return { tenant, endpoint: yield* subscribe(tenant, ["payment.succeeded"], url) }
})

/** Whether what waits for an endpoint, or is under way to it, is leased, in the order in which it came. */
const leases = (endpointId: string) =>
  Effect.flatMap(
    TestService,
    ({ sql }) => sql<{ leased: boolean; attempts: number; sinceItWasStored: boolean | null }>`
      SELECT lease IS NOT NULL AS leased, attempt_count AS attempts, claimed_at = created_at AS "sinceItWasStored"
      FROM payments.delivery_queue WHERE endpoint_id = ${endpointId} ORDER BY created_at, id`
  )

const fromItsStart = { leased: true, attempts: 1, sinceItWasStored: true }

const settings = {
  delivery: {
    ...testSettings.delivery,
    timeout: Duration.minutes(5),
    pollInterval: Duration.minutes(5),
    concurrencyPerEndpoint: 2
  }
}

onService(settings)("a new delivery", (it) => {
  it.scoped("goes to the worker of the process that stores it, under a lease from its start", function* () {
    const consumer = yield* makeConsumer
    const release = consumer.hold()
    const { endpoint, tenant } = yield* subscribed(consumer.url)
    yield* notify(notification(tenant.accountId))
    yield* eventuallyTrue("the delivery", () => consumer.received.length === 1)
    expect(yield* leases(endpoint.id)).toEqual([fromItsStart])
    release()
    const [delivery] = yield* eventuallyIs("the record", deliveriesOf(tenant, endpoint.id), (all) =>
      all.every(({ state }) => state === "delivered")
    )
    expect(delivery).toMatchObject({ attemptCount: 1, attempts: [{ number: 1, trigger: "automatic" }] })
    expect(yield* leases(endpoint.id)).toEqual([])
  })

  it.scoped("waits for a claim if its endpoint has as many in flight as it is given", function* () {
    const consumer = yield* makeConsumer
    const release = consumer.hold()
    const { endpoint, tenant } = yield* subscribed(consumer.url)
    const three = Array.from({ length: 3 }, () => notify(notification(tenant.accountId)))
    yield* Effect.all(three, { concurrency: "unbounded" })
    yield* eventuallyTrue("two in flight", () => consumer.received.length === 2)
    // A claim that began before the first two were stored may have taken the third by now: then it waits in the worker
    const stored = yield* leases(endpoint.id)
    expect(stored.map(({ sinceItWasStored }) => sinceItWasStored === true).sort()).toEqual([false, true, true])
    expect(consumer.received).toHaveLength(2)
    release()
    yield* eventuallyTrue("the third", () => consumer.received.length === 3)
    expect(new Set(consumer.received.map(({ headers }) => headers["service-delivery-id"])).size).toBe(3)
  })

  it.scoped(
    "waits in the worker, under its lease, if its endpoint keeps up; once it is slow, it is given back",
    function* () {
      const consumer = yield* makeConsumer
      const { endpoint, tenant } = yield* subscribed(consumer.url)
      const five = () => Array.from({ length: 5 }, () => notify(notification(tenant.accountId)))
      const none = eventuallyIs("the records", leases(endpoint.id), (left) => left.length === 0)
      /** Stores five while the consumer does not answer; returns how many of them the worker has. */
      const handedOver = Effect.gen(function* () {
        yield* Effect.forEach(five(), (one) => Effect.zipRight(one, none))
        const release = consumer.hold()
        yield* Effect.all(five(), { concurrency: "unbounded" })
        const own = (yield* leases(endpoint.id)).filter(({ sinceItWasStored }) => sinceItWasStored === true)
        yield* eventuallyIs(
          "what waited to be given back",
          leases(endpoint.id),
          (all) => all.filter(({ leased }) => leased).length <= 2
        )
        release()
        yield* none
        return own.length
      })
      // A claim in between begins to count anew
      const numbers = [yield* handedOver, yield* handedOver, yield* handedOver]
      expect(Math.max(...numbers)).toBeGreaterThan(2)
    }
  )

  it.scoped("finds its place free, however often its tenant changed between look-up and storing", function* () {
    const consumer = yield* makeConsumer
    const { endpoint, tenant } = yield* subscribed(consumer.url)
    yield* notify(notification(tenant.accountId))
    // What was remembered is wrong each time: nothing is stored at first, and the places kept for it are given up
    for (let n = 2; n <= 6; n += 1) {
      yield* inDatabase`UPDATE payments.endpoints SET filters = filters WHERE id = ${endpoint.id}`
      yield* notify(notification(tenant.accountId))
      yield* eventuallyTrue("the delivery", () => consumer.received.length === n)
      yield* eventuallyIs("the record", leases(endpoint.id), (left) => left.length === 0)
    }
    const release = consumer.hold()
    yield* notify(notification(tenant.accountId))
    yield* eventuallyTrue("the last delivery", () => consumer.received.length === 7)
    expect(yield* leases(endpoint.id)).toEqual([fromItsStart])
    release()
  })

  it.scoped("is made once of a notification that comes twice at once", function* () {
    const consumer = yield* makeConsumer
    const { endpoint, tenant } = yield* subscribed(consumer.url)
    const payment = notification(tenant.accountId)
    yield* Effect.all([notify(payment), notify(payment), notify(payment)], { concurrency: "unbounded" })
    yield* eventuallyIs("the record", leases(endpoint.id), (left) => left.length === 0)
    expect(consumer.received).toHaveLength(1)
  })
})

onService({ ...settings, roles: { api: true, worker: false } })("a new delivery", (it) => {
  it.scoped("waits for a claim if its process has no worker", function* () {
    const { endpoint, tenant } = yield* subscribed((yield* makeConsumer).url)
    yield* notify(notification(tenant.accountId))
    expect(yield* leases(endpoint.id)).toMatchObject([{ leased: false, attempts: 0 }])
  })
})
