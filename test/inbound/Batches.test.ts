import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { paymentIntent } from "../events/ProviderEvents.ts"
import { recordedQueries } from "../harness/TestDatabase.ts"
import { inDatabase, onService, TestService } from "../harness/TestService.ts"
import {
  atEndpoints,
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  notify,
  outcomeOf,
  subscribe,
  typesTo
} from "./Notifications.ts"

const received = (body: string) => Effect.map(notify(body), ({ status }) => status)

const sendAll = (bodies: ReadonlyArray<string>) => Effect.forEach(bodies, received, { concurrency: "unbounded" })

onService()("notifications that come at once", (it) => {
  it.scoped("are each stored under their own tenant, with their own events and deliveries", function* () {
    const tenants = yield* Effect.forEach([1, 2, 3], () => makeTenant)
    const endpoints = yield* Effect.forEach(tenants, (tenant) => subscribe(tenant))
    const sent = tenants.flatMap((tenant) =>
      Array.from({ length: 12 }, (_, index) => ({ tenant, id: newEventId(), payment: `pi_${index}` }))
    )
    const statuses = yield* sendAll(
      sent.map(({ id, payment, tenant }) =>
        notification(tenant.accountId, { id, object: { ...paymentIntent, id: payment } })
      )
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
    for (const [index, tenant] of tenants.entries()) {
      const rows = yield* inDatabase<{ id: string; payment: string; endpoint: string }>`
        SELECT e.provider_event_id AS id, e.payload::json -> 'data' ->> 'payment_id' AS payment,
          d.endpoint_id AS endpoint
        FROM payments.events e JOIN payments.deliveries d
          ON d.organization_id = e.organization_id AND d.environment = e.environment AND d.event_id = e.id
        WHERE e.organization_id = ${tenant.id} AND e.environment = 'sandbox'`
      const expected = sent
        .filter((one) => one.tenant === tenant)
        .map(({ id, payment }) => ({ id, payment, endpoint: endpoints[index]?.id }))
      expect(rows.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual(
        expected.toSorted((a, b) => a.id.localeCompare(b.id))
      )
    }
  })

  it.scoped("are stored once each, however many copies are among them", function* () {
    const { tenant, ...endpoint } = yield* makeSubscriber()
    const ids = Array.from({ length: 5 }, newEventId)
    const bodies = ids.flatMap((id) => Array.from({ length: 6 }, () => notification(tenant.accountId, { id })))
    expect(new Set(yield* sendAll(bodies))).toEqual(new Set([200]))
    expect(yield* typesTo(endpoint.id)).toHaveLength(5)
    const [counts] = yield* inDatabase<{ receipts: number; copies: number }>`
      SELECT count(*)::int AS receipts, sum(duplicates)::int AS copies FROM payments.receipts
      WHERE organization_id = ${tenant.id} AND environment = 'sandbox'`
    expect(counts).toEqual({ receipts: 5, copies: 25 })
  })

  it.scoped("are searched for by batch, not one by one, if their tenant has changed meanwhile", function* () {
    const { tenant, ...endpoint } = yield* makeSubscriber()
    const send = (count: number) =>
      sendAll(Array.from({ length: count }, () => notification(tenant.accountId, { id: newEventId() })))
    yield* send(2)
    yield* atEndpoints(tenant, "PATCH", `/${endpoint.id}`, { filters: { amountMin: 1 } })
    const query = yield* recordedQueries
    expect(new Set(yield* send(100))).toEqual(new Set([200]))
    const insertions = (into: RegExp) => query.mock.calls.filter((call) => into.test(JSON.stringify(call[0]))).length
    // Each batch is stored in the month's table, and those of its receipts that were not are searched for together
    const searches = insertions(/INSERT INTO payments\.receipts AS/)
    expect(searches).toBeGreaterThan(0)
    expect(searches).toBeLessThanOrEqual(insertions(/INSERT INTO payments\.receipts_\w+ AS/))
    expect(yield* typesTo(endpoint.id)).toHaveLength(102)
  })

  it.scoped("don't fail for one among them that can't be stored", function* () {
    const { sql } = yield* TestService
    const { tenant, ...endpoint } = yield* makeSubscriber()
    const bad = newEventId()
    yield* sql`
        ALTER TABLE payments.receipts ADD CONSTRAINT refused
        CHECK (provider_event_id <> ${sql.literal(`'${bad}'`)}) NOT VALID`
    yield* Effect.addFinalizer(() => Effect.orDie(sql`ALTER TABLE payments.receipts DROP CONSTRAINT refused`))
    const ids = [...Array.from({ length: 20 }, newEventId), bad, ...Array.from({ length: 20 }, newEventId)]
    const statuses = yield* sendAll(ids.map((id) => notification(tenant.accountId, { id })))
    expect(statuses).toEqual(ids.map((id) => (id === bad ? 503 : 200)))
    expect(yield* typesTo(endpoint.id)).toHaveLength(40)
    expect(yield* Effect.forEach(ids.slice(0, 3), outcomeOf)).toEqual(["delivered", "delivered", "delivered"])
  })
})
