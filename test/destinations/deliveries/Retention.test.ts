import { expect } from "@effect/vitest"
import { Context, Duration, Effect } from "effect"
import { Retention } from "../../../src/destinations/deliveries/Retention.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import { inAnotherProcess, inDatabase, onService, TestService } from "../../harness/TestService.ts"
import { makeTenant, subscribe } from "../../inbound/Notifications.ts"
import { storeDeliveries } from "./StoredDeliveries.ts"

const day = 24 * 3600

const makeEndpoint = Effect.gen(function* () {
  const tenant = yield* makeTenant
  const { id } = yield* subscribe(tenant)
  return { tenant, endpointId: id, of: { organizationId: tenant.id, endpointId: id } }
})

const clean = Effect.flatMap(TestService, ({ services }) => Context.get(services, Retention).clean)

/** Which of these are still there: deliveries, attempts, events. */
const left = (ids: ReadonlyArray<string>) =>
  Effect.map(
    inDatabase<{ deliveries: number; attempts: number; events: number }>`
      SELECT
        (SELECT count(*)::int FROM payments.deliveries WHERE id = ANY (${ids}::uuid[])) AS deliveries,
        (SELECT COALESCE(sum(cardinality(attempts)), 0)::int FROM payments.deliveries WHERE id = ANY (${ids}::uuid[])) AS attempts,
        (SELECT count(*)::int FROM payments.events
         WHERE id = ANY (${ids}::text[])) AS events`,
    ([row]) => row
  )

const all = (count: number) => ({ deliveries: count, attempts: count, events: count })

onService({ roles: { api: true, worker: false } })("retention", (it) => {
  it.effect("removes finished deliveries after 30 days with attempts and payloads, whoever's they are", function* () {
    const ours = yield* makeEndpoint
    const theirs = yield* makeEndpoint
    const old = [
      ...(yield* storeDeliveries({ ...ours.of, count: 3, state: "delivered", finishedAgo: 31 * day })),
      ...(yield* storeDeliveries({ ...ours.of, finishedAgo: 31 * day })),
      ...(yield* storeDeliveries({ ...ours.of, test: true, finishedAgo: 400 * day })),
      ...(yield* storeDeliveries({ ...theirs.of, count: 2, finishedAgo: 31 * day }))
    ]
    const young = [
      ...(yield* storeDeliveries({ ...ours.of, state: "delivered", finishedAgo: 30 * day - 3600 })),
      ...(yield* storeDeliveries({ ...theirs.of, finishedAgo: 0 }))
    ]
    yield* clean
    expect(yield* left(old)).toEqual(all(0))
    expect(yield* left(young)).toEqual(all(2))
  })

  it.effect("never removes what still waits, nor its event: it is delivered whole", function* () {
    const { services, sql } = yield* TestService
    const { of } = yield* makeEndpoint
    const [id = ""] = yield* storeDeliveries({ ...of, state: "queued", createdAgo: 90 * day })
    yield* clean
    expect(yield* left([id])).toEqual(all(1))
    yield* sql`UPDATE payments.delivery_queue SET next_attempt_at = now() WHERE id = ${id}`
    yield* Context.get(services, Queue).claim({
      limit: 10,
      lease: Duration.minutes(5),
      perEndpoint: 10,
      inFlight: new Map()
    })
    expect(yield* sql`SELECT lease IS NOT NULL AS claimed FROM payments.delivery_queue WHERE id = ${id}`).toEqual([
      { claimed: true }
    ])
  })

  it.scoped("follows the setting", function* () {
    // A day is kept as long as anything of it, or of a day before it, waits
    yield* inDatabase`DELETE FROM payments.delivery_queue`
    const { of } = yield* makeEndpoint
    const [older = "", younger = ""] = [
      ...(yield* storeDeliveries({ ...of, finishedAgo: 6 * day })),
      ...(yield* storeDeliveries({ ...of, finishedAgo: 3 * day }))
    ]
    const { clean } = yield* inAnotherProcess(Retention, Retention.layer({ keepFor: Duration.days(4) }))
    yield* clean
    expect([yield* left([older]), yield* left([younger])]).toEqual([all(0), all(1)])
  })
})
