import { expect } from "@effect/vitest"
import { Clock, Context, Duration, Effect } from "effect"
import { Receipts } from "../../src/inbound/Receipts.ts"
import { inDatabase, onService, TestService } from "../harness/TestService.ts"
import { auditedReplays, makeNewTenant, paidAtProvider, receiptKey, subscribe, type Tenant } from "./Notifications.ts"

/** One round of the background task, three minutes from now; the pauses that it made, in milliseconds. */
const round = Effect.gen(function* () {
  const { services } = yield* TestService
  const pauses: Array<number> = []
  const now = Clock.make()
  const clock = Object.assign(Clock.make(), {
    currentTimeMillis: Effect.map(now.currentTimeMillis, (millis) => millis + 180_000),
    unsafeCurrentTimeMillis: () => now.unsafeCurrentTimeMillis() + 180_000,
    // The calls' own time limits are waited for as ever
    sleep: (duration: Duration.Duration) =>
      Duration.toMillis(duration) > 5000
        ? now.sleep(duration)
        : Effect.sync(() => void pauses.push(Duration.toMillis(duration)))
  })
  yield* Effect.withClock(Context.get(services, Receipts).reconcile("sandbox"), clock)
  return pauses
})

/** A payment whose notification never came. */
const unheard = Effect.fnUntraced(function* (tenant: Tenant) {
  const id = yield* paidAtProvider(tenant)
  yield* inDatabase`DELETE FROM payments.receipts WHERE organization_id = ${tenant.id}`
  yield* inDatabase`DELETE FROM payments.deliveries WHERE organization_id = ${tenant.id}`
  yield* inDatabase`DELETE FROM payments.events WHERE organization_id = ${tenant.id}`
  return id
})

const stored = ({ id }: Tenant) =>
  inDatabase`
    SELECT provider_event_id AS id, outcome, reconciled FROM payments.receipts
    WHERE organization_id = ${id} AND type = 'payment_intent.succeeded'`

onService({ roles: { api: true, worker: false } })("lost notifications", (it) => {
  it.effect("are stored and delivered by a round of the background task, once, and marked", function* () {
    const tenant = yield* makeNewTenant
    yield* subscribe(tenant)
    const id = yield* unheard(tenant)
    const pauses = yield* round
    expect(yield* stored(tenant)).toEqual([{ id, outcome: "delivered", reconciled: true }])
    const deliveries = inDatabase`
      SELECT e.type, d.state FROM payments.deliveries d JOIN payments.events e
        ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
      WHERE d.organization_id = ${tenant.id} AND e.type = 'payment.succeeded'`
    expect(yield* deliveries).toEqual([{ type: "payment.succeeded", state: "queued" }])
    // Nobody did it
    expect(yield* auditedReplays(tenant)).toEqual([])
    // One of a hundred calls that the provider allows in test mode: 25 a second
    expect(pauses.length).toBeGreaterThan(0)
    expect(new Set(pauses)).toEqual(new Set([4000]))
    yield* round
    expect(yield* deliveries).toHaveLength(1)
    const { services } = yield* TestService
    expect(yield* Context.get(services, Receipts).get(receiptKey(id))).toMatchObject({
      reconciled: true,
      duplicates: 0
    })
  })

  it.effect("are found again after a database has fallen back by less than an hour", function* () {
    const tenant = yield* makeNewTenant
    yield* round
    const id = yield* unheard(tenant)
    yield* inDatabase`
      UPDATE payments.provider_accounts SET reconciled_until = now() + interval '40 minutes'
      WHERE organization_id = ${tenant.id}`
    yield* round
    expect(yield* stored(tenant)).toEqual([{ id, outcome: "no_subscriber", reconciled: true }])
  })

  it.effect("from before the account was linked are nobody's", function* () {
    const tenant = yield* makeNewTenant
    yield* unheard(tenant)
    yield* inDatabase`
      UPDATE payments.provider_accounts SET linked_at = now() + interval '1 minute' WHERE organization_id = ${tenant.id}`
    yield* round
    expect(yield* stored(tenant)).toEqual([])
  })
})
