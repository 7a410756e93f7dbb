import { setTimeout } from "node:timers/promises"
import type { SqlClient, Statement } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Duration, Effect, Layer } from "effect"
import { Receipts } from "../../src/inbound/Receipts.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import { Provider } from "../../src/payments/Provider.ts"
import type { ConnectedAccount } from "../../src/payments/ProviderCall.ts"
import { endQueued } from "../destinations/deliveries/StoredDeliveries.ts"
import { inDatabase, onService, serviceOf, TestService } from "../harness/TestService.ts"
import {
  accepted,
  auditedReplays,
  disconnect,
  makeNewTenant,
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  notify,
  operator,
  outcomeOf,
  paidAtProvider,
  receiptKey,
  received,
  setActive,
  subscribe,
  type Tenant,
  withoutProvider
} from "./Notifications.ts"

const receipts = Effect.map(TestService, ({ services }) => Context.get(services, Receipts))

const deliveriesOf = (tenant: Tenant) =>
  inDatabase<{ id: string; endpoint: string; type: string; state: string; waiting: boolean }>`
    SELECT d.id, d.endpoint_id AS endpoint, e.type, d.state, q.id IS NOT NULL AS waiting
    FROM payments.deliveries d JOIN payments.events e
      ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
    LEFT JOIN payments.delivery_queue q
      ON q.organization_id = d.organization_id AND q.environment = d.environment AND q.id = d.id
    WHERE d.organization_id = ${tenant.id} ORDER BY e.type, d.endpoint_id`

/** As if deliveries had never been stored: what fulfils a condition on columns that the queue has too. */
const loseDeliveries = (sql: SqlClient.SqlClient, condition: Statement.Fragment) => sql`
  WITH gone AS (DELETE FROM payments.delivery_queue WHERE ${condition})
  DELETE FROM payments.deliveries WHERE ${condition}`

/** The account takes no charges any more, and the notification of it has come; returns the event's id. */
const updateAccount = Effect.fnUntraced(function* ({ accountId }: Tenant) {
  const { emulator } = yield* TestService
  const { events } = yield* emulator.trigger({ type: "account.updated", account: accountId, charges_enabled: false })
  const id = events[0]?.id ?? ""
  yield* received(id)
  return id
})

onService({ roles: { api: true, worker: false } })("receipts", (it) => {
  it.effect("are listed newest first, page by page, as the filters say, for their environment alone", function* () {
    const { list } = yield* receipts
    const tenant = yield* makeTenant
    const before = new Date()
    const ids = [newEventId(), newEventId(), newEventId()]
    for (const id of ids) yield* accepted(notify(notification(tenant.accountId, { id })))
    const ignored = newEventId()
    yield* accepted(notify(notification(tenant.accountId, { id: ignored, type: "customer.created" })))
    const newestFirst = [ignored, ...ids.toReversed()]
    const ofTenant = { environment: "sandbox", organizationId: tenant.id } as const
    const idsOf = (query: Parameters<typeof list>[0]) =>
      Effect.map(list(query), ({ data, has_more }) => [data.map((receipt) => receipt.providerEventId), has_more])

    expect(yield* idsOf(ofTenant)).toEqual([newestFirst, false])
    expect(yield* idsOf({ ...ofTenant, limit: 2 })).toEqual([newestFirst.slice(0, 2), true])
    expect(yield* idsOf({ ...ofTenant, limit: 2, before: newestFirst[1] ?? "" })).toEqual([newestFirst.slice(2), false])
    expect(yield* idsOf({ ...ofTenant, outcome: "ignored" })).toEqual([[ignored], false])
    expect(yield* idsOf({ ...ofTenant, type: "customer.created" })).toEqual([[ignored], false])
    expect(yield* idsOf({ ...ofTenant, since: before })).toEqual([newestFirst, false])
    expect(yield* idsOf({ ...ofTenant, since: new Date(Date.now() + 60_000) })).toEqual([[], false])
    expect(yield* idsOf({ ...ofTenant, environment: "production" })).toEqual([[], false])
    expect((yield* idsOf({ environment: "sandbox", limit: 1 }))[0]).toEqual([ignored])
    expect(yield* Effect.flip(list({ ...ofTenant, before: "evt_unknown" }))).toMatchObject({
      _tag: "ReceiptNotFound"
    })
  })

  it.effect("say what was received, and what became of it", function* () {
    const { sql } = yield* TestService
    const { get } = yield* receipts
    const tenant = yield* makeNewTenant
    const endpoint = yield* subscribe(tenant, ["payment.succeeded", "milestone.first_payment"])
    yield* setActive(tenant, yield* subscribe(tenant), false)
    const id = newEventId()
    const created = Math.floor(Date.now() / 1000) - 60
    const body = notification(tenant.accountId, { id, created })
    yield* accepted(notify(body))
    yield* accepted(notify(body))
    const succeeded = sql`endpoint_id = ${endpoint.id}
        AND event_id IN (SELECT id FROM payments.events WHERE type = 'payment.succeeded')`
    yield* endQueued(sql, succeeded, "failed")
    const none = { queued: 0, delivered: 0, failed: 0 }
    const eventId = expect.stringMatching(/^svc_evt_/)
    expect(yield* get(receiptKey(id))).toEqual({
      environment: "sandbox",
      providerEventId: id,
      organizationId: tenant.id,
      accountId: tenant.accountId,
      type: "payment_intent.succeeded",
      livemode: false,
      outcome: "delivered",
      reason: null,
      duplicates: 1,
      reconciled: false,
      providerCreatedAt: new Date(created * 1000),
      receivedAt: expect.any(Date),
      events: [
        { id: eventId, type: "payment.succeeded", deliveries: { ...none, failed: 1 }, skipped: 1 },
        { id: eventId, type: "milestone.first_payment", deliveries: { ...none, queued: 1 }, skipped: 0 }
      ]
    })
    const unlinked = newEventId()
    yield* accepted(notify(notification("acct_nobodyknowsthis", { id: unlinked })))
    expect(yield* get(receiptKey(unlinked))).toMatchObject({ outcome: "unlinked", organizationId: null, events: [] })
    for (const unknown of [receiptKey("evt_unknown"), { ...receiptKey(id), environment: "production" } as const]) {
      expect(yield* Effect.flip(get(unknown))).toMatchObject({ _tag: "ReceiptNotFound", ...unknown })
    }
  })

  it.effect("replayed make the deliveries that are missing and nothing else, however often and at once", function* () {
    const { sql } = yield* TestService
    const { get, replay } = yield* receipts
    const tenant = yield* makeTenant
    const [lost, kept, paused] = [yield* subscribe(tenant), yield* subscribe(tenant), yield* subscribe(tenant)]
    const filtered = yield* subscribe(tenant, ["payment.succeeded"], undefined, { amountMin: 1_000_000 })
    yield* setActive(tenant, paused, false)
    const id = yield* paidAtProvider(tenant)
    const before = yield* deliveriesOf(tenant)
    expect(before).toHaveLength(2)
    const payloads = sql`SELECT id, payload, created_at FROM payments.events WHERE provider_event_id = ${id}`
    const stored = yield* payloads
    expect(yield* replay(receiptKey(id), operator)).toMatchObject({
      deliveriesMade: 0,
      events: [{ deliveriesMade: 0 }]
    })
    expect(yield* auditedReplays(tenant)).toEqual([])

    yield* loseDeliveries(sql, sql`endpoint_id = ${lost.id}`)
    yield* endQueued(sql, sql`endpoint_id = ${kept.id}`, "failed")
    const all = yield* Effect.all(
      Array.from({ length: 10 }, () => replay(receiptKey(id), operator)),
      { concurrency: "unbounded" }
    )
    expect(all.map(({ deliveriesMade }) => deliveriesMade).sort()).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    const after = yield* deliveriesOf(tenant)
    expect(after.map((delivery) => delivery.id)).toEqual(before.map((delivery) => delivery.id))
    const outcome = ({ id }: { readonly id: string }) => after.find(({ endpoint }) => endpoint === id)
    expect(outcome(lost)).toMatchObject({ state: "queued", waiting: true })
    expect(outcome(kept)).toMatchObject({ state: "failed", waiting: false })

    yield* setActive(tenant, paused, true)
    const later = yield* subscribe(tenant)
    const [event] = (yield* get(receiptKey(id))).events
    expect(yield* replay(receiptKey(id), operator)).toEqual({
      changed: true,
      outcome: "delivered",
      deliveriesMade: 2,
      events: [{ id: event?.id, type: "payment.succeeded", deliveriesMade: 2 }]
    })
    const endpoints = (yield* deliveriesOf(tenant)).map(({ endpoint }) => endpoint)
    expect(endpoints).toEqual([lost, kept, paused, later].map((endpoint) => endpoint.id).sort())
    expect(endpoints).not.toContain(filtered.id)
    expect(yield* payloads).toEqual(stored)
    const entry = { target: id, kind: "operator", author: "root", environment: "sandbox" }
    expect(yield* auditedReplays(tenant)).toEqual([entry, entry])
  })

  it.effect("replayed make the same event again where it is gone, and say that it was delivered", function* () {
    const { sql } = yield* TestService
    const { replay } = yield* receipts
    const tenant = yield* makeTenant
    const id = yield* paidAtProvider(tenant)
    const payloads = sql`SELECT id, payload FROM payments.events WHERE provider_event_id = ${id}`
    const stored = yield* payloads
    expect(yield* outcomeOf(id)).toBe("no_subscriber")
    yield* sql`DELETE FROM payments.events WHERE provider_event_id = ${id}`
    yield* subscribe(tenant)
    expect((yield* replay(receiptKey(id))).deliveriesMade).toBe(1)
    expect(yield* payloads).toEqual(stored)
    expect(yield* outcomeOf(id)).toBe("delivered")
  })

  it.effect("that were delivered are not replayed once their deliveries are no longer kept", function* () {
    const { sql } = yield* TestService
    const { replay } = yield* receipts
    const { tenant } = yield* makeSubscriber()
    const id = yield* paidAtProvider(tenant)
    expect(yield* outcomeOf(id)).toBe("delivered")
    // As their retention removes them, of which the provider's may be longer
    yield* loseDeliveries(sql, sql`organization_id = ${tenant.id}`)
    yield* sql`DELETE FROM payments.events WHERE provider_event_id = ${id}`
    expect(yield* Effect.flip(replay(receiptKey(id)))).toMatchObject({
      _tag: "ReplayRefused",
      reason: "deliveries_expired"
    })
    expect(yield* deliveriesOf(tenant)).toEqual([])
    expect(yield* outcomeOf(id)).toBe("delivered")
  })

  it.effect("replayed tell the milestone for the account's first payment alone", function* () {
    const { replay } = yield* receipts
    const tenant = yield* makeNewTenant
    const first = yield* paidAtProvider(tenant)
    const second = yield* paidAtProvider(tenant)
    yield* subscribe(tenant, ["payment.succeeded", "milestone.first_payment"])
    expect((yield* replay(receiptKey(second))).deliveriesMade).toBe(1)
    expect((yield* replay(receiptKey(first))).deliveriesMade).toBe(2)
    const types = (yield* deliveriesOf(tenant)).map(({ type }) => type)
    expect(types).toEqual(["milestone.first_payment", "payment.succeeded", "payment.succeeded"])
  })

  it.effect("of an account linked later are replayed to its organization, and found in it", function* () {
    const { get, replay } = yield* receipts
    const { tenant } = yield* makeSubscriber(["payment.failed"])
    const accounts = yield* serviceOf(Accounts)
    const place = { organizationId: tenant.id, environment: "sandbox" } as const
    yield* accounts.unlink(place, operator)
    const id = yield* paidAtProvider(tenant, "payment_intent.payment_failed")
    expect(yield* Effect.flip(replay(receiptKey(id)))).toMatchObject({
      _tag: "ReplayRefused",
      reason: "account_not_linked"
    })
    yield* accounts.link(place, tenant.accountId, operator)
    expect((yield* replay(receiptKey(id))).deliveriesMade).toBe(1)
    expect(yield* get(receiptKey(id))).toMatchObject({ outcome: "delivered", organizationId: tenant.id })

    // Once they are an organization's, another one never gets them
    const other = yield* makeTenant
    yield* accounts.unlink(place, operator)
    yield* inDatabase`UPDATE payments.provider_accounts SET account_id = ${tenant.accountId} WHERE organization_id = ${other.id}`
    expect(yield* Effect.flip(replay(receiptKey(id)))).toMatchObject({ reason: "another_organization" })
  })

  it.effect("of an account linked later are its organization's after a replay without subscribers", function* () {
    const { get, replay } = yield* receipts
    const tenant = yield* makeTenant
    yield* setActive(tenant, yield* subscribe(tenant), false)
    const accounts = yield* serviceOf(Accounts)
    const place = { organizationId: tenant.id, environment: "sandbox" } as const
    yield* accounts.unlink(place, operator)
    const id = yield* paidAtProvider(tenant)
    expect(yield* get(receiptKey(id))).toMatchObject({ outcome: "unlinked", organizationId: null, events: [] })
    yield* accounts.link(place, tenant.accountId, operator)
    const stored = { outcome: "no_subscriber", deliveriesMade: 0, events: [{ type: "payment.succeeded" }] }
    expect(yield* replay(receiptKey(id), operator)).toMatchObject({ ...stored, changed: true })
    expect(yield* get(receiptKey(id))).toMatchObject({
      outcome: "no_subscriber",
      organizationId: tenant.id,
      events: [{ type: "payment.succeeded", skipped: 1 }]
    })
    expect(yield* auditedReplays(tenant)).toMatchObject([{ target: id }])
    expect(yield* replay(receiptKey(id), operator)).toMatchObject({ ...stored, changed: false })
    expect(yield* auditedReplays(tenant)).toHaveLength(1)
    expect(yield* inDatabase`SELECT 1 FROM payments.skipped_events WHERE organization_id = ${tenant.id}`).toHaveLength(
      1
    )
  })

  it.effect("of an account's status are replayed as it was told, without asking for what is over", function* () {
    const { replay } = yield* receipts
    const tenant = yield* makeTenant
    const id = yield* updateAccount(tenant)
    yield* subscribe(tenant, ["account.updated"])
    yield* subscribe(tenant, ["account.updated"], undefined, { currencies: ["brl"] })
    const replayed = yield* withoutProvider(tenant.accountId, replay(receiptKey(id)))
    expect(replayed).toMatchObject({ deliveriesMade: 1, events: [{ type: "account.updated" }] })
    expect((yield* deliveriesOf(tenant)).map(({ type }) => type)).toEqual(["account.updated"])
  })

  it.effect("that are missing are found newest first; from the oldest on, the milestone is the same", function* () {
    const { services, sql } = yield* TestService
    const { replay } = yield* receipts
    const { missing } = Context.get(services, Receipts)
    const [tenant, other] = [yield* makeNewTenant, yield* makeNewTenant]
    const lost: Array<{ readonly id: string }> = []
    for (const of of [tenant, other, tenant]) {
      lost.push({ id: yield* paidAtProvider(of) })
      // The provider dates to the second
      yield* Effect.promise(() => setTimeout(1010 - (Date.now() % 1000)))
    }
    const milestoneOf = ({ id }: Tenant) => sql<{ source: string }>`
        SELECT provider_event_id AS source FROM payments.events
        WHERE organization_id = ${id} AND type = 'milestone.first_payment'`
    const told = yield* milestoneOf(tenant)
    expect(told).toEqual([{ source: lost[0]?.id }])

    // As a database that has lost its last moments
    for (const { id } of [tenant, other]) {
      yield* sql`DELETE FROM payments.receipts WHERE organization_id = ${id}`
      yield* sql`DELETE FROM payments.events WHERE organization_id = ${id}`
      yield* sql`UPDATE payments.provider_accounts SET first_payment_event_id = NULL WHERE organization_id = ${id}`
    }
    const since = new Date(Date.now() - 60_000)
    const found = (yield* missing({ environment: "sandbox", since })).events.filter(({ providerEventId }) =>
      lost.some(({ id }) => id === providerEventId)
    )
    expect(found.map(({ providerEventId }) => providerEventId)).toEqual(lost.map(({ id }) => id).toReversed())
    for (const { organizationId, providerEventId } of found.toReversed()) {
      yield* replay({ ...receiptKey(providerEventId), organizationId })
    }
    expect(yield* milestoneOf(tenant)).toEqual(told)
  })

  it.effect("that are missing are found though some accounts can't be asked, and those are named", function* () {
    const { missing } = yield* serviceOf(Receipts)
    const [failing, gone, long, tenant] = [yield* makeTenant, yield* makeTenant, yield* makeTenant, yield* makeTenant]
    const id = yield* paidAtProvider(tenant)
    yield* inDatabase`DELETE FROM payments.receipts WHERE organization_id = ${tenant.id}`
    yield* disconnect(gone.id, "1 minute")
    yield* disconnect(long.id, "1 day")
    const since = new Date(Date.now() - 3_600_000)
    const found = yield* withoutProvider(failing.accountId, missing({ environment: "sandbox", since }))
    expect(found.events.map(({ providerEventId }) => providerEventId)).toContain(id)
    const reasons = new Map(found.notAsked.map(({ organizationId, reason }) => [organizationId, reason]))
    expect([failing, gone, long, tenant].map(({ id }) => reasons.get(id))).toEqual([
      "failed",
      "not_connected",
      // It was nobody's in all of that time
      undefined,
      undefined
    ])
    const of = (organizationId: Tenant["id"]) => missing({ environment: "sandbox", since, organizationId })
    expect(yield* of(long.id)).toMatchObject({ events: [], notAsked: [{ reason: "not_connected" }] })
    const elsewhere = { environment: "production", since, organizationId: tenant.id } as const
    expect(yield* missing(elsewhere)).toMatchObject({ events: [], notAsked: [{ organizationId: tenant.id }] })
  })

  it.effect("that are missing of an account's status lead to a reading of it, as of now", function* () {
    const { sql } = yield* TestService
    const { replay } = yield* receipts
    const { tenant } = yield* makeSubscriber(["account.updated"])
    const [before] = yield* sql<{ status: string }>`
        SELECT reported_status::text AS status FROM payments.provider_accounts WHERE organization_id = ${tenant.id}`
    const id = yield* updateAccount(tenant)

    // As a database that has lost its last moments
    yield* loseDeliveries(sql, sql`organization_id = ${tenant.id}`)
    yield* sql`DELETE FROM payments.receipts WHERE organization_id = ${tenant.id}`
    yield* sql`DELETE FROM payments.events WHERE organization_id = ${tenant.id}`
    yield* sql`
        UPDATE payments.provider_accounts SET reported_status = ${before?.status ?? ""}::jsonb
        WHERE organization_id = ${tenant.id}`
    const again = replay({ ...receiptKey(id), organizationId: tenant.id }, operator)
    expect(yield* again).toMatchObject({
      outcome: "delivered",
      deliveriesMade: 1,
      events: [{ type: "account.updated" }]
    })
    expect((yield* deliveriesOf(tenant)).map(({ type }) => type)).toEqual(["account.updated"])
    expect(yield* again).toMatchObject({ outcome: "delivered", deliveriesMade: 0 })
    expect(yield* auditedReplays(tenant)).toHaveLength(1)
  })

  it.effect("of live events that came as the sandbox's are missing in production, and replayed there", function* () {
    const { services, sql } = yield* TestService
    const { tenant } = yield* makeSubscriber()
    const id = yield* paidAtProvider(tenant)
    // As a live event was once stored that came under the sandbox's secret, of an account that is linked in production
    yield* loseDeliveries(sql, sql`organization_id = ${tenant.id}`)
    yield* sql`DELETE FROM payments.events WHERE organization_id = ${tenant.id}`
    yield* sql`
        UPDATE payments.receipts SET outcome = 'wrong_mode', livemode = true WHERE provider_event_id = ${id}`
    yield* sql`UPDATE payments.provider_accounts SET environment = 'production' WHERE organization_id = ${tenant.id}`
    yield* sql`
        INSERT INTO payments.endpoints (organization_id, environment, id, name, url, events, filters)
        SELECT organization_id, 'production', gen_random_uuid(), name, url, events, filters
        FROM payments.endpoints WHERE organization_id = ${tenant.id}`
    yield* sql`
        INSERT INTO payments.endpoint_secrets (organization_id, environment, id, endpoint_id, master_key_id, ciphertext)
        SELECT s.organization_id, 'production', gen_random_uuid(), e.id, s.master_key_id, s.ciphertext
        FROM payments.endpoint_secrets s JOIN payments.endpoints e USING (organization_id)
        WHERE s.organization_id = ${tenant.id} AND e.environment = 'production'`

    // The local provider has no live mode: its sandbox stands for it
    const local = Context.get(services, Provider)
    const inSandbox = (account: ConnectedAccount): ConnectedAccount => ({ ...account, environment: "sandbox" })
    const live = Receipts.layer({ receiptRetention: Duration.infinity }).pipe(
      Layer.provide(
        Layer.succeed(Provider, {
          ...local,
          listEvents: (account, ...rest) => local.listEvents(inSandbox(account), ...rest),
          retrieveEvent: (account, eventId) =>
            Effect.map(local.retrieveEvent(inSandbox(account), eventId), (event) => ({ ...event, livemode: true }))
        })
      ),
      Layer.provide(Layer.succeedContext(services))
    )
    yield* Effect.gen(function* () {
      const { get, missing, replay } = yield* Receipts
      const production = { environment: "production", providerEventId: id } as const
      const place = { environment: "production", organizationId: tenant.id } as const
      expect(yield* Effect.flip(replay(receiptKey(id)))).toMatchObject({ reason: "wrong_mode" })
      const since = new Date(Date.now() - 60_000)
      expect((yield* missing({ ...place, since })).events).toMatchObject([{ providerEventId: id }])
      const replayed = yield* replay({ ...production, organizationId: tenant.id }, operator)
      expect(replayed).toMatchObject({ outcome: "delivered", deliveriesMade: 1 })
      expect(yield* get(production)).toMatchObject({ livemode: true, organizationId: tenant.id })
      expect((yield* missing({ ...place, since })).events).toEqual([])
    }).pipe(Effect.provide(live), Effect.scoped)
  })

  it.effect("are not replayed where nothing may be made of them, or the provider can't be asked", function* () {
    const { sql } = yield* TestService
    const { replay } = yield* receipts
    const { tenant } = yield* makeSubscriber()
    const refusal = (id: string) => Effect.flip(replay(receiptKey(id), operator))
    const [wrongMode, unkept] = [newEventId(), newEventId()]
    yield* accepted(notify(notification(tenant.accountId, { id: wrongMode })))
    // As of a test event that came under production's secret
    yield* sql`
        UPDATE payments.receipts SET outcome = 'wrong_mode' WHERE provider_event_id = ${wrongMode}`
    yield* accepted(notify(notification(tenant.accountId, { id: unkept })))
    expect(yield* refusal(wrongMode)).toMatchObject({ _tag: "ReplayRefused", reason: "wrong_mode" })
    expect(yield* refusal(unkept)).toMatchObject({ _tag: "ReplayRefused", reason: "event_expired" })
    expect(yield* refusal("evt_unknown")).toMatchObject({ _tag: "ReceiptNotFound" })
    const paid = yield* paidAtProvider(tenant)
    yield* loseDeliveries(sql, sql`organization_id = ${tenant.id}`)
    expect(yield* withoutProvider(tenant.accountId, refusal(paid))).toMatchObject({ _tag: "ProviderUnavailable" })
    yield* disconnect(tenant.id)
    expect(yield* refusal(paid)).toMatchObject({ _tag: "ReplayRefused", reason: "account_not_linked" })
    expect(yield* deliveriesOf(tenant)).toEqual([])
  })
})
