import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import { observeQueueWithin } from "../../src/engine/queue/Queue.ts"
import { Metrics, type MetricsWriter } from "../../src/platform/telemetry/Metrics.ts"
import { storeDeliveries } from "../destinations/deliveries/StoredDeliveries.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { inDatabase, onService, TestService, testReturnUrls } from "../harness/TestService.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { makeSubscriber } from "../inbound/Notifications.ts"
import { startService } from "../surface/http/StartedService.ts"

/** What an export would find: the values that are set when it looks. */
const lookedWithin = Effect.fnUntraced(function* (window: number) {
  const { sql } = yield* TestService
  const values: Record<string, number> = {}
  let look: Effect.Effect<void> = Effect.void
  const metrics: MetricsWriter = {
    record: () => {},
    count: () => {},
    set: (name, value, attributes) => {
      values[[name.split(".").at(-1), ...attributes].join(" ")] = value
    },
    observe: (effect) =>
      Effect.sync(() => {
        look = effect
      })
  }
  yield* Effect.scoped(observeQueueWithin(window)).pipe(
    Effect.provideService(Metrics, metrics),
    Effect.provideService(SqlClient.SqlClient, sql)
  )
  yield* look
  return values
})

const namesSetBy = (roles: { readonly api: boolean; readonly worker: boolean }) =>
  Effect.gen(function* () {
    const looks: Array<Effect.Effect<void>> = []
    const set = new Set<string>()
    const metrics: MetricsWriter = {
      record: () => {},
      count: () => {},
      set: (name) => void set.add(name),
      observe: (look) => Effect.sync(() => void looks.push(look))
    }
    const { url: databaseUrl } = yield* createMigratedDatabase
    const provider = { sandbox: Option.none(), production: Option.none(), apiUrl: Option.none(), ...testReturnUrls }
    yield* startService({ databaseUrl, provider, settings: { roles } }).pipe(Effect.provideService(Metrics, metrics))
    yield* Effect.all(looks)
    return set
  })

describe("a process", () => {
  for (const roles of [
    { api: true, worker: false },
    { api: false, worker: true }
  ]) {
    it.scopedLive(`reports the queue with ${JSON.stringify(roles)}`, function* () {
      const names = yield* namesSetBy(roles)
      expect(names).toContain("connected_payments.delivery.queue.oldest_due_age")
      expect(names).toContain("connected_payments.delivery.queue.depth")
    })
  }
})

onService({ roles: { api: true, worker: false } })("the queue's metrics", (it) => {
  it.effect("count what is due and scheduled in each environment, and the age of the oldest that is due", function* () {
    expect(yield* lookedWithin(1000)).toEqual({
      "depth sandbox due": 0,
      "depth sandbox scheduled": 0,
      "depth production due": 0,
      "depth production scheduled": 0,
      "oldest_due_age sandbox": 0,
      "oldest_due_age production": 0
    })
    const { id: endpointId, tenant } = yield* makeSubscriber()
    const of = { organizationId: tenant.id, endpointId }
    yield* storeDeliveries({ ...of, state: "delivered", count: 4 })
    yield* storeDeliveries({ ...of, state: "queued", count: 3 })
    const due = yield* storeDeliveries({ ...of, state: "queued", count: 2 })
    yield* inDatabase`
        UPDATE payments.delivery_queue SET next_attempt_at = now() - interval '90 seconds' WHERE id = ${due[0] ?? ""}`
    yield* inDatabase`
        UPDATE payments.delivery_queue SET next_attempt_at = now() - interval '5 seconds' WHERE id = ${due[1] ?? ""}`
    // An attempt of it is under way: nobody is late
    const [underWay = ""] = yield* storeDeliveries({ ...of, state: "queued" })
    yield* inDatabase`
        UPDATE payments.delivery_queue SET next_attempt_at = now() - interval '1 hour', lease = gen_random_uuid(),
          claimed_at = now(), leased_until = now() + interval '15 seconds'
        WHERE id = ${underWay}`
    const values = yield* lookedWithin(1000)
    expect(values).toMatchObject({
      "depth sandbox due": 2,
      "depth sandbox scheduled": 4,
      "depth production due": 0,
      "oldest_due_age production": 0
    })
    expect(values["oldest_due_age sandbox"]).toBeGreaterThanOrEqual(90)
    expect(values["oldest_due_age sandbox"]).toBeLessThan(150)
  })

  it.effect("are not known while the database can't be asked, and are again afterwards", function* () {
    yield* inDatabase`ALTER TABLE payments.delivery_queue RENAME TO away`
    const unknown = yield* lookedWithin(1000)
    yield* inDatabase`ALTER TABLE payments.away RENAME TO delivery_queue`
    expect(Object.keys(unknown)).toHaveLength(6)
    expect(Object.values(unknown).filter((value) => !Number.isNaN(value))).toEqual([])
    expect(Object.values(yield* lookedWithin(1000)).filter(Number.isNaN)).toEqual([])
  })

  it.effect("beyond the rows that are looked at are an estimate of the right size", function* () {
    const { id: endpointId, tenant } = yield* makeSubscriber()
    yield* storeDeliveries({ organizationId: tenant.id, endpointId, state: "queued", count: 500 })
    yield* inDatabase`UPDATE payments.delivery_queue SET next_attempt_at = now() - interval '1 minute', lease = NULL, leased_until = NULL`
    yield* inDatabase`ANALYZE payments.delivery_queue`
    const values = yield* lookedWithin(100)
    expect(values["depth sandbox due"]).toBeGreaterThan(450)
    expect(values["depth sandbox due"]).toBeLessThan(550)
    expect(values["depth sandbox scheduled"]).toBe(0)
  })
})
