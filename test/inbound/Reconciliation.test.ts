import { expect } from "@effect/vitest"
import { Chunk, Clock, Context, Duration, Effect, Schema } from "effect"
import { Receipts } from "../../src/inbound/Receipts.ts"
import { makeReconciliation } from "../../src/inbound/Reconciliation.ts"
import type { ListedEvent } from "../../src/payments/notifications/Port.ts"
import { Provider } from "../../src/payments/Provider.ts"
import { inDatabase, onService, serviceOf, TestService } from "../harness/TestService.ts"
import { auditedReplays, makeNewTenant, paidAtProvider, receiptKey, subscribe, type Tenant } from "./Notifications.ts"

/** A clock three minutes ahead; the pauses of the background task take none of the test's time, and are listed. */
const pausing = (pauses: Array<number>) => {
  const now = Clock.make()
  const ahead = () => 180_000 + pauses.reduce((sum, pause) => sum + pause, 0)
  return Object.assign(Clock.make(), {
    currentTimeMillis: Effect.map(now.currentTimeMillis, (millis) => millis + ahead()),
    unsafeCurrentTimeMillis: () => now.unsafeCurrentTimeMillis() + ahead(),
    // The calls' own time limits are waited for as ever
    sleep: (duration: Duration.Duration) =>
      Duration.toMillis(duration) > 5000
        ? now.sleep(duration)
        : Effect.sync(() => void pauses.push(Duration.toMillis(duration)))
  })
}

/** One round of the background task; its pauses, in milliseconds. */
const round = Effect.gen(function* () {
  const { services } = yield* TestService
  const pauses: Array<number> = []
  yield* Effect.withClock(Context.get(services, Receipts).reconcile("sandbox"), pausing(pauses))
  return pauses
})

/** One round with a provider that lists these events, and adds the ids of what it stores. */
const roundOver = Effect.fnUntraced(function* (
  eventsOf: (account: string) => ReadonlyArray<ListedEvent>,
  stored: Array<string>
) {
  const { services } = yield* TestService
  const pauses: Array<number> = []
  const before = new Set(stored)
  const listEvents: Provider["Type"]["listEvents"] = ({ accountId }, { since, until }, take) => {
    const seconds = [Math.floor(since.getTime() / 1000), Math.ceil((until?.getTime() ?? 0) / 1000)] as const
    const listed = eventsOf(accountId).filter(
      ({ created, id }) => created >= seconds[0] && created < seconds[1] && !before.has(id)
    )
    const pages = Chunk.toReadonlyArray(Chunk.chunksOf(Chunk.fromIterable(listed.toReversed()), 100))
    const next = (index: number): Effect.Effect<void> =>
      Effect.flatMap(take(Chunk.toReadonlyArray(pages[index] ?? Chunk.empty())), (goesOn) =>
        goesOn && index + 1 < pages.length ? next(index + 1) : Effect.void
      )
    return next(0)
  }
  const takeIn = (_: unknown, event: unknown) =>
    Effect.sync(() => {
      stored.push(Schema.decodeUnknownSync(Schema.Struct({ id: Schema.String }))(event).id)
      return { changed: true, outcome: "delivered" as const, deliveriesMade: 0, events: [] }
    })
  yield* makeReconciliation({ takeIn }).pipe(
    Effect.flatMap(({ round }) => round("sandbox")),
    Effect.provideService(Provider, { ...Context.get(services, Provider), listEvents }),
    Effect.provide(services),
    Effect.withClock(pausing(pauses))
  )
})

/** So many events per second, since some seconds ago. */
const busy = (name: string, perSecond: ReadonlyArray<number>): ReadonlyArray<ListedEvent> => {
  const since = Math.floor(Date.now() / 1000) - perSecond.length
  return perSecond.flatMap((count, index) =>
    Array.from({ length: count }, (_, of) => ({
      id: `evt_${name}_${index}_${of}`,
      type: "payment_intent.succeeded",
      created: since + index
    }))
  )
}

/** Accounts of this test alone, linked for an hour. */
const linkedForAnHour = Effect.fnUntraced(function* (count: number) {
  const tenants = yield* Effect.replicateEffect(makeNewTenant, count)
  yield* inDatabase`
    UPDATE payments.provider_accounts SET linked_at = now() - interval '1 hour',
      status = CASE WHEN account_id = ANY (${tenants.map(({ accountId }) => accountId)}) THEN status ELSE 'disconnected' END,
      disconnected_at = CASE WHEN account_id = ANY (${tenants.map(({ accountId }) => accountId)}) THEN NULL ELSE now() END`
  return tenants
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
    expect(yield* (yield* serviceOf(Receipts)).get(receiptKey(id))).toMatchObject({
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

  it.effect("of one second are all stored, each once, the oldest first, however many they are", function* () {
    const [tenant] = yield* linkedForAnHour(1)
    const events = busy("burst", [1, 0, 2500, 1, 3])
    const stored: Array<string> = []
    // What a round has no time for is stored by the next ones
    for (let before = -1; before < stored.length; ) {
      before = stored.length
      yield* roundOver((account) => (account === tenant?.accountId ? events : []), stored)
    }
    expect(stored.toSorted()).toEqual(events.map(({ id }) => id).toSorted())
    expect(stored.map((id) => Number(id.split("_")[2]))).toEqual(events.map(({ id }) => Number(id.split("_")[2])))
  })

  it.effect(
    "of an account with too many for a round hold up nobody's, and the next rounds go on with them",
    function* () {
      const [flooded, calm] = yield* linkedForAnHour(2)
      const [flood, one] = [
        busy(
          "flood",
          Array.from({ length: 3000 }, () => 10)
        ),
        busy("calm", [1])
      ]
      const eventsOf = (account: string) =>
        account === flooded?.accountId ? flood : account === calm?.accountId ? one : []
      yield* inDatabase`
      UPDATE payments.provider_accounts SET reconciled_until = now() - interval '30 minutes'
      WHERE account_id = ${calm?.accountId ?? ""}`
      const stored: Array<string> = []
      yield* roundOver(eventsOf, stored)
      const first = stored.length
      expect(stored).toContain(one[0]?.id)
      expect(first).toBeGreaterThan(100)
      expect(first).toBeLessThan(flood.length)
      yield* roundOver(eventsOf, stored)
      expect(stored.length).toBeGreaterThan(first)
    }
  )
})
