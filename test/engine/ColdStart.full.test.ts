import { Clock, Context, Effect, Layer } from "effect"
import { deliveryLayer, servicesLayer, storageLayer } from "../../src/app/Service.ts"
import { Queue } from "../../src/engine/queue/Queue.ts"
import { storeDeliveries } from "../destinations/deliveries/StoredDeliveries.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventuallyIs, eventuallyTrue } from "../harness/Eventually.ts"
import { inDatabase, onService, TestService } from "../harness/TestService.ts"
import { expect } from "../harness/Tests.ts"
import { makeTenant, subscribe } from "../inbound/Notifications.ts"

/** A worker's claims, the first one first: of which kind, and how many deliveries each took. */
type Claims = Array<{ readonly inOrderOfTime: boolean; readonly count: number }>

/** A worker as in another process, with its own connections, and what its claims take. The scope ends it. */
const startWorker = Effect.gen(function* () {
  const { options } = yield* TestService
  const claims: Claims = []
  const storage = yield* Layer.build(storageLayer(options))
  const services = yield* Layer.build(servicesLayer(options)).pipe(Effect.provide(storage))
  const queue = Context.get(services, Queue)
  const counted: Queue["Type"] = {
    ...queue,
    claim: (claim) =>
      Effect.tap(queue.claim(claim), ({ deliveries }) =>
        Effect.sync(() => claims.push({ inOrderOfTime: claim.look === undefined, count: deliveries.length }))
      )
  }
  yield* Layer.build(deliveryLayer(options)).pipe(
    Effect.provideService(Queue, counted),
    Effect.provide(services),
    Effect.provide(storage)
  )
  return claims
}).pipe(Effect.withClock(Clock.make()), Effect.orDie)

const waiting = Effect.map(
  inDatabase<{ count: number }>`SELECT count(*)::int AS count FROM payments.delivery_queue`,
  ([row]) => row?.count
)

const deliveries = 12_000

onService({ roles: { api: true, worker: false }, endpointLimit: 100 })("two workers that begin cold", (it) => {
  for (const [endpoints, due] of [
    [4, "before they start"],
    [60, "while they wait"]
  ] as const) {
    it.scoped(`share a backlog of ${endpoints} endpoints, due ${due}, and seldom claim for nothing`, function* () {
      const consumer = yield* makeConsumer
      const tenant = yield* makeTenant
      for (let number = 0; number < endpoints; number += 1) {
        const { id } = yield* subscribe(tenant, ["payment.succeeded"], consumer.url)
        const count = deliveries / endpoints
        yield* storeDeliveries({ organizationId: tenant.id, endpointId: id, state: "queued", count })
      }
      const comeDue = inDatabase`
        UPDATE payments.delivery_queue SET next_attempt_at = now() - random() * interval '1 minute'`
      if (due === "before they start") yield* comeDue
      const workers = yield* Effect.all([startWorker, startWorker], { concurrency: 2 })
      if (due === "while they wait") {
        yield* eventuallyTrue("claims that found nothing", () => workers.every((claims) => claims.length >= 2))
        for (const claims of workers) claims.splice(0)
        yield* comeDue
        yield* inDatabase`SELECT pg_notify('connected_payments_payments', 'test')`
      }
      yield* eventuallyIs("an empty queue", waiting, (left) => left === 0)
      expect(consumer.received).toHaveLength(deliveries)
      for (const claims of workers) {
        expect(claims.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(deliveries / 5)
        // Others pause for a while if they find nothing
        const inOrder = claims.filter(({ inOrderOfTime }) => inOrderOfTime).map(({ count }) => count)
        const untilLast = inOrder.slice(0, inOrder.findLastIndex((count) => count > 0) + 1)
        expect(untilLast.filter((count) => count === 0).length).toBeLessThan(untilLast.length / 3)
        expect(untilLast.length).toBeLessThan(deliveries / 30)
      }
    })
  }
})
