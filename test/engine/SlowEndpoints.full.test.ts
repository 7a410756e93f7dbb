import { Duration, Effect } from "effect"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { onService, testSettings } from "../harness/TestService.ts"
import { makeSubscriber, makeTenant, notification, notify, subscribe } from "../inbound/Notifications.ts"

/** Attempts that hang, and rests until the next poll, outlast the test: what waits for one of them never comes. */
const hanging = { ...testSettings.delivery, timeout: Duration.minutes(5), pollInterval: Duration.minutes(5) }

/** So many endpoints of organizations of their own, 16 each, that hang with 30 deliveries due each. */
const makeHanging = Effect.fnUntraced(function* (count: number) {
  const consumer = yield* makeConsumer
  consumer.hold()
  const organizations = Math.ceil(count / 16)
  yield* Effect.forEach(
    Array.from({ length: organizations }, (_, index) => Math.min(16, count - 16 * index)),
    Effect.fnUntraced(function* (endpoints) {
      const tenant = yield* makeTenant
      for (let number = 0; number < endpoints; number += 1) {
        yield* subscribe(tenant, ["payment.succeeded"], consumer.url)
      }
      yield* Effect.forEach(Array.from({ length: 30 }), () => notify(notification(tenant.accountId)), {
        concurrency: 5
      })
    })
  )
  return consumer
})

/** Events of a healthy endpoint, one after the other. */
const expectDelivered = Effect.gen(function* () {
  const healthy = yield* makeConsumer
  const { tenant } = yield* makeSubscriber(["payment.succeeded"], healthy.url)
  for (let event = 1; event <= 5; event += 1) {
    yield* notify(notification(tenant.accountId))
    yield* eventuallyTrue("the healthy one's delivery", () => healthy.received.length === event)
  }
})

for (const { caps, count, name } of [
  { name: "three that take up all eight places", count: 3, caps: { concurrency: 8, concurrencyPerEndpoint: 4 } },
  { name: "many more than there are places", count: 48, caps: { concurrency: 8, concurrencyPerEndpoint: 4 } },
  { name: "32 at the usual settings", count: 32, caps: { concurrency: 256, concurrencyPerEndpoint: 16 } }
]) {
  onService({ delivery: { ...hanging, ...caps } })("endpoints that hang", (it) => {
    it.scoped(`don't hold up a healthy one: ${name}`, function* () {
      yield* makeHanging(count)
      yield* expectDelivered
    })
  })
}
