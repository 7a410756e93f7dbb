import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Fiber, Layer } from "effect"
import { Retention } from "../../src/deliveries/api/Retention.ts"
import { Queue } from "../../src/deliveries/sending/Queue.ts"
import { onService, TestService } from "../harness/TestService.ts"
import { makeTenant, subscribe } from "../inbound/Notifications.ts"
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
  Effect.flatMap(TestService, ({ sql }) =>
    Effect.map(
      sql<{ deliveries: number; attempts: number; events: number }>`
        SELECT
          (SELECT count(*)::int FROM payments.deliveries WHERE id = ANY (${ids}::uuid[])) AS deliveries,
          (SELECT COALESCE(sum(cardinality(attempts)), 0)::int FROM payments.deliveries WHERE id = ANY (${ids}::uuid[])) AS attempts,
          (SELECT count(*)::int FROM payments.events
           WHERE id = ANY (SELECT 'svc_evt_' || id FROM unnest(${ids}::uuid[]) AS id)) AS events`,
      ([row]) => row
    )
  )

const all = (count: number) => ({ deliveries: count, attempts: count, events: count })

onService({ roles: { api: true, worker: false } })("retention", (it) => {
  it.effect("removes finished deliveries after 30 days with attempts and payloads, whoever's they are", () =>
    Effect.gen(function* () {
      const ours = yield* makeEndpoint
      const theirs = yield* makeEndpoint
      const old = [
        ...(yield* storeDeliveries({ ...ours.of, count: 3, state: "delivered", finishedAgo: 30 * day + 60 })),
        ...(yield* storeDeliveries({ ...ours.of, finishedAgo: 30 * day + 60 })),
        ...(yield* storeDeliveries({ ...ours.of, test: true, finishedAgo: 400 * day })),
        ...(yield* storeDeliveries({ ...theirs.of, count: 2, finishedAgo: 31 * day }))
      ]
      const young = [
        ...(yield* storeDeliveries({ ...ours.of, state: "delivered", finishedAgo: 30 * day - 3600 })),
        // Made long ago, finished within the 30 days: it counts from the end
        ...(yield* storeDeliveries({ ...ours.of, createdAgo: 32 * day, finishedAgo: 29 * day })),
        ...(yield* storeDeliveries({ ...theirs.of, finishedAgo: 0 }))
      ]
      yield* clean
      expect(yield* left(old)).toEqual(all(0))
      expect(yield* left(young)).toEqual(all(3))
    })
  )

  it.effect("never removes what still waits, nor its event: it is delivered whole", () =>
    Effect.gen(function* () {
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
  )

  it.effect("keeps an event as long as one of its deliveries, or a record of its being skipped, is kept", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestService
      const { endpointId, of, tenant } = yield* makeEndpoint
      const other = yield* subscribe(tenant)
      const [gone = "", shared = "", skipped = "", nobodys = ""] = yield* storeDeliveries({
        ...of,
        count: 4,
        finishedAgo: 31 * day
      })
      yield* sql`
        INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids,
          attempts)
        SELECT d.organization_id, d.environment, uuidv7(interval '-31 days'), ${other.id}, d.event_id, d.secret_ids, '{}'
        FROM payments.deliveries d WHERE d.id = ${shared}`
      const skip = (id: string, ago: number) => sql`
        INSERT INTO payments.skipped_events (organization_id, environment, endpoint_id, event_id, type,
          provider_event_id, created_at)
        VALUES (${tenant.id}, 'sandbox', ${endpointId}, ${`svc_evt_${id}`}, 'payment.succeeded', 'evt_1',
          now() - ${ago} * interval '1 second')`
      yield* skip(skipped, 29 * day)
      yield* skip(nobodys, 31 * day)
      yield* clean
      expect(yield* left([gone, nobodys])).toEqual(all(0))
      expect(yield* left([shared])).toEqual({ deliveries: 0, attempts: 0, events: 1 })
      expect(yield* left([skipped])).toEqual({ deliveries: 0, attempts: 0, events: 1 })
      expect(
        yield* sql`
        SELECT event_id AS id FROM payments.skipped_events WHERE endpoint_id = ${endpointId}`
      ).toEqual([{ id: `svc_evt_${skipped}` }])
    })
  )

  it.effect("removes events that nobody subscribed to, and finished recoveries, after their 30 days", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestService
      const { endpointId, tenant } = yield* makeEndpoint
      const event = (id: string, ago: number) => sql`
        INSERT INTO payments.events (organization_id, environment, id, type, payload, created_at)
        VALUES (${tenant.id}, 'sandbox', ${id}, 'payment.succeeded', '{}', now() - ${ago} * interval '1 second')`
      yield* event("svc_evt_old", 30 * day + 60)
      yield* event("svc_evt_young", 30 * day - 60)
      const recovery = (state: string, ago: number) => sql`
        INSERT INTO payments.recoveries (organization_id, environment, id, endpoint_id, since, total, reached_at,
          reached_id, state, created_at, finished_at)
        VALUES (${tenant.id}, 'sandbox', gen_random_uuid(), ${endpointId}, now(), ${ago}, now(), gen_random_uuid(),
          ${state}, now() - ${ago} * interval '1 second',
          CASE WHEN ${state === "finished"} THEN now() - ${ago} * interval '1 second' END)`
      yield* sql`ALTER TABLE payments.recoveries DROP CONSTRAINT recoveries_check1`
      yield* recovery("finished", 31 * day)
      yield* recovery("finished", 29 * day)
      yield* clean
      expect(yield* sql`SELECT id FROM payments.events WHERE organization_id = ${tenant.id}`).toEqual([
        { id: "svc_evt_young" }
      ])
      expect(yield* sql`SELECT total FROM payments.recoveries WHERE endpoint_id = ${endpointId}`).toEqual([
        { total: 29 * day }
      ])
    })
  )

  it.effect("takes many in batches, by several processes at once, and waits for nobody's lock", () =>
    Effect.gen(function* () {
      const { services, sql } = yield* TestService
      const { of } = yield* makeEndpoint
      const ids = yield* storeDeliveries({ ...of, count: 1700, state: "delivered", finishedAgo: 31 * day })
      const [held = "", ...others] = ids
      const process = Layer.fresh(Retention.layer({ keepFor: Duration.days(30) })).pipe(
        Layer.provide(Layer.succeedContext(Context.add(services, SqlClient.SqlClient, sql))),
        Layer.build,
        Effect.map(Context.get(Retention))
      )
      const processes = yield* Effect.all([process, process, process])
      const locked = yield* Deferred.make<void>()
      const release = yield* Deferred.make<void>()
      const holder = yield* sql`SELECT 1 FROM payments.deliveries WHERE id = ${held} FOR UPDATE`.pipe(
        Effect.zipRight(Deferred.succeed(locked, undefined)),
        Effect.zipRight(Deferred.await(release)),
        sql.withTransaction,
        Effect.fork
      )
      yield* Deferred.await(locked)
      yield* Effect.forEach(processes, ({ clean }) => clean, { concurrency: 3 }).pipe(
        Effect.timeout("25 seconds"),
        Effect.ensuring(Effect.zipRight(Deferred.succeed(release, undefined), Fiber.await(holder)))
      )
      expect(yield* left(others)).toEqual(all(0))
      expect(yield* left([held])).toEqual(all(1))
      yield* clean
      expect(yield* left([held])).toEqual(all(0))
    }).pipe(Effect.scoped)
  )

  it.effect("follows the setting", () =>
    Effect.gen(function* () {
      const { services, sql } = yield* TestService
      const { of } = yield* makeEndpoint
      const [older = "", younger = ""] = [
        ...(yield* storeDeliveries({ ...of, finishedAgo: 5 * day })),
        ...(yield* storeDeliveries({ ...of, finishedAgo: 3 * day }))
      ]
      const layer = Layer.fresh(Retention.layer({ keepFor: Duration.days(4) })).pipe(
        Layer.provide(Layer.succeedContext(Context.add(services, SqlClient.SqlClient, sql)))
      )
      yield* Context.get(yield* Layer.build(layer), Retention).clean
      expect([yield* left([older]), yield* left([younger])]).toEqual([all(0), all(1)])
    }).pipe(Effect.scoped)
  )
})
