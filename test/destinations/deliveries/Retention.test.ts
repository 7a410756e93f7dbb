import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { Retention } from "../../../src/destinations/deliveries/Retention.ts"
import { inDatabase, onService, TestService } from "../../harness/TestService.ts"
import { makeEndpoint, storeDeliveries } from "./StoredDeliveries.ts"

const day = 24 * 3600

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
})
