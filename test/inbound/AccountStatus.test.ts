import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Option } from "effect"
import { Inbound } from "../../src/inbound/Inbound.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import { Provider } from "../../src/payments/Provider.ts"
import { eventually, whileRunning } from "../harness/Eventually.ts"
import { inDatabase, onService, serviceOf, TestService } from "../harness/TestService.ts"
import {
  accepted,
  disconnect,
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  notify,
  notifyThin,
  outcomeOf,
  signature,
  subscribe,
  type Tenant,
  thinNotification,
  withoutProvider
} from "./Notifications.ts"

type Json = Readonly<Record<string, unknown>>

/** Changes the account at the provider, whose own thin notification of it reaches nobody: the tests tell. */
const change = (tenant: Tenant, changes: Json) =>
  Effect.flatMap(TestService, ({ emulator }) =>
    Effect.zipRight(
      emulator.setThinWebhookUrl("http://127.0.0.1:9/"),
      emulator.trigger({ ...changes, type: "v1.account.updated", account: tenant.accountId })
    )
  )

const snapshotOf = (tenant: Tenant, id = newEventId(), created = Math.floor(Date.now() / 1000)) =>
  notification(tenant.accountId, {
    id,
    created,
    type: "account.updated",
    object: { id: tenant.accountId, object: "account" }
  })

const eventsOf = (tenant: Tenant) =>
  Effect.map(
    inDatabase<{ payload: string }>`
      SELECT payload FROM payments.events WHERE organization_id = ${tenant.id} AND type = 'account.updated'
      ORDER BY created_at`,
    (rows) => rows.map(({ payload }): Json => JSON.parse(payload))
  )

const deliveryCount = (tenant: Tenant) =>
  Effect.map(
    inDatabase<{
      count: number
    }>`SELECT count(*)::int AS count FROM payments.deliveries WHERE organization_id = ${tenant.id}`,
    ([row]) => row?.count
  )

const connection = (tenant: Tenant) =>
  Effect.map(
    inDatabase<{ status: string }>`SELECT status FROM payments.provider_accounts WHERE organization_id = ${tenant.id}`,
    ([row]) => row?.status
  )

/** Each field of the contract's table, with a change of it alone and what the event then says. */
const changes: Readonly<Record<string, readonly [change: Json, said: Json]>> = {
  charges_enabled: [{ charges_enabled: false }, { charges_enabled: false }],
  payouts_enabled: [{ payouts_enabled: false }, { payouts_enabled: false }],
  details_submitted: [{ details_submitted: false }, { details_submitted: false }],
  capabilities: [
    { capabilities: { card_payments: "pending" } },
    { capabilities: { card_payments: "pending", transfers: "active" } }
  ],
  "requirements.currently_due_count": [
    { requirements: { currently_due: ["individual.LEAK", "external_account"] } },
    { requirements: { action_required: true, currently_due_count: 2 } }
  ],
  "requirements.past_due_count": [
    { requirements: { past_due: ["individual.LEAK"] } },
    { requirements: { action_required: true, past_due_count: 1 } }
  ],
  "requirements.pending_verification_count": [
    { requirements: { pending_verification: ["individual.LEAK"] } },
    { requirements: { action_required: false, pending_verification_count: 1 } }
  ],
  "requirements.disabled_reason": [
    { requirements: { disabled_reason: "requirements.past_due" } },
    { requirements: { disabled_reason: "requirements.past_due" } }
  ],
  "requirements.current_deadline": [
    { requirements: { current_deadline: 1_790_000_000 } },
    { requirements: { current_deadline: 1_790_000_000 } }
  ]
}

onService({ roles: { api: true, worker: false } })("the account's status", (it) => {
  for (const [field, [changed, said]] of Object.entries(changes)) {
    it.effect(`is told when ${field} changes, with the documented fields alone`, function* () {
      const { tenant } = yield* makeSubscriber(["account.updated"])
      yield* change(tenant, changed)
      const id = newEventId()
      yield* accepted(notify(snapshotOf(tenant, id, 1_770_000_000)))
      const { requirements = {}, ...flags } = said
      const [event, ...more] = yield* eventsOf(tenant)
      expect(more).toEqual([])
      expect(event).toEqual({
        id: expect.stringMatching(/^svc_evt_[0-9a-f]{64}$/),
        type: "account.updated",
        version: 1,
        created_at: "2026-02-02T02:40:00.000Z",
        livemode: false,
        organization_id: tenant.id,
        source: { provider: "stripe", event_id: id },
        data: {
          account_id: tenant.accountId,
          livemode: false,
          charges_enabled: true,
          payouts_enabled: true,
          details_submitted: true,
          capabilities: { card_payments: "active", transfers: "active" },
          ...flags,
          requirements: {
            action_required: false,
            currently_due_count: 0,
            past_due_count: 0,
            pending_verification_count: 0,
            disabled_reason: null,
            current_deadline: null,
            ...Object(requirements)
          }
        }
      })
      expect(JSON.stringify(event)).not.toContain("LEAK")
      expect([yield* outcomeOf(id), yield* deliveryCount(tenant)]).toEqual(["delivered", 1])
    })
  }

  it.effect("is not told when only the profile, or which names are pending, changes", function* () {
    const { tenant } = yield* makeSubscriber(["account.updated"])
    yield* change(tenant, { business_profile: { name: "Other" } })
    const [first, second] = [newEventId(), newEventId()]
    yield* accepted(notify(snapshotOf(tenant, first)))
    yield* change(tenant, { requirements: { currently_due: ["a"] } })
    yield* accepted(notify(snapshotOf(tenant)))
    yield* change(tenant, { requirements: { currently_due: ["b"] } })
    yield* accepted(notifyThin(thinNotification(tenant.accountId, { id: second })))
    expect([yield* outcomeOf(first), yield* outcomeOf(second)]).toEqual(["ignored", "ignored"])
    expect(yield* eventsOf(tenant)).toHaveLength(1)
  })

  it.effect("is what the provider says when it is asked, whatever the notification says", function* () {
    const { tenant } = yield* makeSubscriber(["account.updated"])
    const object = { id: tenant.accountId, object: "account", charges_enabled: false, payouts_enabled: false }
    yield* accepted(notify(notification(tenant.accountId, { type: "account.updated", object })))
    expect(yield* eventsOf(tenant)).toEqual([])
  })

  it.effect("is told once by snapshot and thin notification of one change, in either order or at once", function* () {
    const { tenant } = yield* makeSubscriber(["account.updated"])
    const snapshot = () => accepted(notify(snapshotOf(tenant)))
    const thin = () => accepted(notifyThin(thinNotification(tenant.accountId, { snapshot: newEventId() })))
    yield* change(tenant, { charges_enabled: false })
    yield* Effect.zipRight(snapshot(), thin())
    yield* change(tenant, { charges_enabled: true })
    yield* Effect.zipRight(thin(), snapshot())
    yield* change(tenant, { charges_enabled: false })
    yield* Effect.all([thin(), snapshot()], { concurrency: 2 })
    const told = yield* eventsOf(tenant)
    expect(told.map(({ data }) => Object(data).charges_enabled)).toEqual([false, true, false])
    expect(yield* deliveryCount(tenant)).toBe(3)
  })

  it.effect("is told once by fifty notifications at once, and ten copies of one leave one receipt", function* () {
    const { tenant } = yield* makeSubscriber(["account.updated"])
    yield* change(tenant, { payouts_enabled: false })
    const id = newEventId()
    const copy = snapshotOf(tenant, id)
    const all = Array.from({ length: 50 }, (_, index) => {
      if (index < 10) return notify(copy)
      return index % 2 === 0 ? notify(snapshotOf(tenant)) : notifyThin(thinNotification(tenant.accountId))
    })
    // As the provider: once more what a busy process does not take in time
    const untilTaken = all.map(Effect.repeat({ until: ({ status }) => status !== 503 }))
    yield* Effect.forEach(untilTaken, accepted, { concurrency: "unbounded" })
    expect(yield* eventsOf(tenant)).toHaveLength(1)
    expect(yield* deliveryCount(tenant)).toBe(1)
    expect(yield* inDatabase`SELECT duplicates FROM payments.receipts WHERE provider_event_id = ${id}`).toEqual([
      { duplicates: 9 }
    ])
  })

  it.effect("of an older reading never takes a newer one's place", function* () {
    const { services } = yield* TestService
    const { tenant } = yield* makeSubscriber(["account.updated"])
    const provider = Context.get(services, Provider)
    const [isRead, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    // The real provider's answer, held back on its way
    const slow: Provider["Type"] = {
      ...provider,
      retrieveAccount: (account) =>
        Effect.tap(provider.retrieveAccount(account), () =>
          Effect.zipRight(Deferred.succeed(isRead, undefined), Deferred.await(goOn))
        )
    }
    const { receive } = yield* Layer.build(Inbound.layer).pipe(
      Effect.map(Context.get(Inbound)),
      Effect.provide(Context.add(services, Provider, slow)),
      Effect.scoped
    )
    yield* change(tenant, { charges_enabled: false })
    const body = snapshotOf(tenant)
    const older = yield* Effect.fork(receive(Buffer.from(body), signature(body)))
    yield* Deferred.await(isRead)
    yield* change(tenant, { charges_enabled: true, payouts_enabled: false })
    yield* accepted(notify(snapshotOf(tenant)))
    yield* Deferred.succeed(goOn, undefined)
    expect(yield* Fiber.join(older)).toBe("ignored")
    expect((yield* eventsOf(tenant)).map(({ data }) => data)).toEqual([
      expect.objectContaining({ charges_enabled: true, payouts_enabled: false })
    ])
    yield* accepted(notify(snapshotOf(tenant)))
    expect(yield* eventsOf(tenant)).toHaveLength(1)
  })

  it.effect("waits for its account's lock with one connection at most, and not for long", function* () {
    const { request, sql } = yield* TestService
    const locked = yield* makeTenant
    const other = yield* makeTenant
    yield* subscribe(locked, ["account.updated"])
    yield* subscribe(other, ["account.updated", "payment.succeeded"])
    yield* change(locked, { charges_enabled: false })
    const held = yield* Deferred.make<void>()
    const release = yield* Deferred.make<void>()
    const holder = yield* sql`
        SELECT 1 FROM payments.provider_accounts WHERE account_id = ${locked.accountId} FOR UPDATE`.pipe(
      Effect.zipRight(Deferred.succeed(held, undefined)),
      Effect.zipRight(Deferred.await(release)),
      sql.withTransaction,
      Effect.fork
    )
    yield* Deferred.await(held)
    const body = snapshotOf(locked)
    const telling = yield* Effect.fork(
      Effect.forEach([body, ...Array.from({ length: 19 }, () => snapshotOf(locked))], (one) => notify(one), {
        concurrency: "unbounded"
      })
    )
    const othersWork = Effect.gen(function* () {
      yield* accepted(notify(notification(other.accountId)))
      yield* accepted(notify(snapshotOf(other)))
      const answer = yield* request("GET", `/v2/organizations/${other.id}/integrations/endpoints`, { key: other.key })
      expect(answer.status, answer.text).toBe(200)
    })
    // The provider repeats them
    for (const { headers, status } of yield* whileRunning(telling, othersWork)) {
      expect(status).toBe(503)
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0)
    }
    yield* Deferred.succeed(release, undefined)
    yield* Fiber.join(holder)
    yield* accepted(notify(body))
    expect(yield* eventsOf(locked)).toHaveLength(1)
  })

  it.effect("is never dated before what was told last: consumers order by created_at", function* () {
    const { tenant } = yield* makeSubscriber(["account.updated"])
    yield* change(tenant, { charges_enabled: false })
    yield* accepted(notify(snapshotOf(tenant, newEventId(), 1_770_000_100)))
    yield* change(tenant, { charges_enabled: true })
    yield* accepted(notify(snapshotOf(tenant, newEventId(), 1_770_000_000)))
    const told = yield* eventsOf(tenant)
    expect(told.map((event) => event["created_at"])).toEqual(["2026-02-02T02:41:40.000Z", "2026-02-02T02:41:40.000Z"])
  })

  it.effect("reaches endpoints without filters alone: none is applicable to it", function* () {
    const { tenant, ...everything } = yield* makeSubscriber(["account.updated"])
    const filters = [
      { currencies: ["brl"] },
      { amountMin: 0 },
      { amountMax: 1_000_000 },
      { products: ["prod_1"] },
      { prices: ["price_1"] },
      { metadata: { a: "b" } }
    ]
    for (const filter of filters) yield* subscribe(tenant, ["account.updated"], undefined, filter)
    yield* change(tenant, { charges_enabled: false })
    yield* accepted(notify(snapshotOf(tenant)))
    expect(
      yield* inDatabase`SELECT endpoint_id AS id FROM payments.deliveries WHERE organization_id = ${tenant.id}`
    ).toEqual([{ id: everything.id }])
  })

  it.effect("of a disconnected account is nobody's concern: no call, no event, no connection", function* () {
    const { tenant } = yield* makeSubscriber(["account.updated"])
    yield* change(tenant, { charges_enabled: false })
    yield* disconnect(tenant.id)
    const ids = [newEventId(), newEventId(), newEventId()] as const
    yield* withoutProvider(
      tenant.accountId,
      Effect.all([
        accepted(notify(snapshotOf(tenant, ids[0]))),
        accepted(notifyThin(thinNotification(tenant.accountId, { id: ids[1] }))),
        accepted(
          notifyThin(thinNotification(tenant.accountId, { id: ids[2], type: "v1.account.application.authorized" }))
        )
      ])
    )
    for (const id of ids) expect(yield* outcomeOf(id)).toBe("unlinked")
    expect([yield* eventsOf(tenant), yield* connection(tenant)]).toEqual([[], "disconnected"])
  })

  it.effect("is known from the link on, which tells nothing itself and loses no change under way", function* () {
    const accounts = yield* serviceOf(Accounts)
    const { tenant } = yield* makeSubscriber(["account.updated"])
    const link = accounts.link({ organizationId: tenant.id, environment: "sandbox" }, tenant.accountId)
    yield* change(tenant, { charges_enabled: false })
    yield* link
    expect(yield* eventsOf(tenant)).toEqual([])
    yield* accepted(notify(snapshotOf(tenant)))
    expect(yield* eventsOf(tenant)).toHaveLength(1)

    yield* disconnect(tenant.id)
    yield* change(tenant, { charges_enabled: true })
    yield* link
    yield* accepted(notify(snapshotOf(tenant)))
    expect(yield* eventsOf(tenant)).toHaveLength(1)
  })

  it.effect("is asked for again if the provider is down: 503, nothing stored, the repeat is told once", function* () {
    const { tenant } = yield* makeSubscriber(["account.updated"])
    yield* change(tenant, { charges_enabled: false })
    const [id, thinId] = [newEventId(), newEventId()]
    const [body, thin] = [snapshotOf(tenant, id), thinNotification(tenant.accountId, { id: thinId })]
    const answers = yield* withoutProvider(tenant.accountId, Effect.all([notify(body), notifyThin(thin)]))
    for (const answer of answers) {
      expect([answer.status, answer.json["code"]]).toEqual([503, "service_unavailable"])
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
    }
    expect([yield* outcomeOf(id), yield* outcomeOf(thinId), yield* eventsOf(tenant)]).toEqual([
      undefined,
      undefined,
      []
    ])
    yield* accepted(notify(body))
    yield* accepted(notify(body))
    yield* accepted(notifyThin(thin))
    expect([yield* outcomeOf(id), yield* outcomeOf(thinId)]).toEqual(["delivered", "ignored"])
    expect(yield* eventsOf(tenant)).toHaveLength(1)
  })

  it.effect("of an account whose access was taken back leads to its disconnection", function* () {
    const { emulator } = yield* TestService
    const tenant = yield* makeTenant
    yield* emulator.revokeAccount(tenant.accountId)
    const body = snapshotOf(tenant)
    yield* accepted(notify(body))
    expect(yield* connection(tenant)).toBe("disconnected")
    yield* accepted(notify(body))
    expect(yield* eventsOf(tenant)).toEqual([])
  })

  const ignored = {
    "a payment": { type: "v1.payment_intent.succeeded", related: { id: "pi_1", type: "payment_intent" } },
    "a type that nobody knows": { type: "v9.something.else" },
    "a ping": { type: "v2.core.event_destination.ping", related: { id: "ed_1", type: "event_destination" } },
    "an authorization": { type: "v1.account.application.authorized", related: null },
    "a type named like a snapshot's": { type: "account.updated" }
  }
  for (const [what, options] of Object.entries(ignored)) {
    it.effect(`is no matter of ${what}, which a thin notification may name: a receipt and nothing more`, function* () {
      const { tenant } = yield* makeSubscriber(["payment.succeeded", "account.updated"])
      yield* change(tenant, { charges_enabled: false })
      const id = newEventId()
      yield* withoutProvider(
        tenant.accountId,
        accepted(notifyThin(thinNotification(tenant.accountId, { id, ...options })))
      )
      expect([yield* outcomeOf(id), yield* deliveryCount(tenant)]).toEqual(["ignored", 0])
    })
  }

  const accounts = {
    "its object": { context: null },
    "its object of the newer kind": {
      type: "v2.core.account[configuration.merchant].capability_status_updated",
      context: null,
      newer: true
    },
    "the context": { type: "v1.capability.updated", related: { id: "card_payments", type: "capability" } },
    "the end of a longer context": { related: null, nested: true }
  }
  for (const [where, { newer = false, nested = false, ...options }] of Object.entries<
    Parameters<typeof thinNotification>[1] & { readonly newer?: boolean; readonly nested?: boolean }
  >(accounts)) {
    it.effect(`is told by a thin notification that names the account in ${where}`, function* () {
      const { tenant } = yield* makeSubscriber(["account.updated"])
      yield* change(tenant, { charges_enabled: false })
      const id = newEventId()
      const body = thinNotification(tenant.accountId, {
        id,
        ...options,
        ...(newer ? { related: { id: tenant.accountId, type: "v2.core.account" } } : {}),
        ...(nested ? { context: `org_1/${tenant.accountId}` } : {})
      })
      yield* accepted(notifyThin(body))
      expect([yield* outcomeOf(id), (yield* eventsOf(tenant)).length]).toEqual(["delivered", 1])
    })
  }

  it.effect("is not asked for after thin notifications of unknown accounts, none and the other mode", function* () {
    const tenant = yield* makeTenant
    yield* change(tenant, { charges_enabled: false })
    const [unknown, none, other] = [newEventId(), newEventId(), newEventId()]
    yield* accepted(notifyThin(thinNotification("acct_nobodyknowsthis", { id: unknown })))
    yield* accepted(notifyThin(thinNotification("x", { id: none, related: null, context: null })))
    const refused = yield* withoutProvider(
      tenant.accountId,
      notifyThin(thinNotification(tenant.accountId, { id: other, livemode: true }))
    )
    expect(refused.status).toBe(503)
    expect([yield* outcomeOf(unknown), yield* outcomeOf(none)]).toEqual(["unlinked", "malformed"])
    expect(yield* eventsOf(tenant)).toEqual([])
  })

  it.effect("ends with the thin word that access was given back, unless it was linked after that", function* () {
    const tenant = yield* makeTenant
    const type = "v1.account.application.deauthorized"
    const old = new Date(Date.now() - 60_000).toISOString()
    yield* accepted(notifyThin(thinNotification(tenant.accountId, { type, related: null, created: old })))
    yield* accepted(
      notify(
        notification(tenant.accountId, {
          type: "account.application.deauthorized",
          object: { id: "ca_1" },
          created: Math.floor(Date.parse(old) / 1000)
        })
      )
    )
    expect(yield* connection(tenant)).toBe("connected")
    yield* accepted(notifyThin(thinNotification(tenant.accountId, { type, related: null })))
    expect(yield* connection(tenant)).toBe("disconnected")
  })

  it.effect("stays if what was given back comes after a further link of a connected account", function* () {
    const tenant = yield* makeTenant
    yield* inDatabase`
        UPDATE payments.provider_accounts SET linked_at = now() - interval '2 hours' WHERE organization_id = ${tenant.id}`
    const place = { organizationId: tenant.id, environment: "sandbox" } as const
    const before = yield* (yield* serviceOf(Accounts)).show(place)
    expect(Option.some(yield* (yield* serviceOf(Accounts)).link(place, tenant.accountId))).toEqual(before)
    const givenBack = (created: number) =>
      accepted(
        notify(
          notification(tenant.accountId, {
            type: "account.application.deauthorized",
            object: { id: "ca_1" },
            created: Math.floor(created / 1000)
          })
        )
      )
    yield* givenBack(Date.now() - 60_000)
    expect(yield* connection(tenant)).toBe("connected")
    yield* givenBack(Date.now())
    expect(yield* connection(tenant)).toBe("disconnected")
  })

  it.effect("is told by the provider's own notifications, snapshot and thin, once a change", function* () {
    const { baseUrl, emulator } = yield* TestService
    const { tenant } = yield* makeSubscriber(["account.updated"])
    yield* emulator.setThinWebhookUrl(`${baseUrl}/webhooks/provider/thin`)
    const { events, thin_events } = yield* emulator.trigger({
      type: "account.updated",
      account: tenant.accountId,
      charges_enabled: false,
      thin: true
    })
    const later = yield* emulator.trigger({ type: "v1.capability.updated", account: tenant.accountId })
    const newer = yield* emulator.trigger({
      type: "v2.core.account[requirements].updated",
      account: tenant.accountId,
      requirements: { past_due: ["x"] }
    })
    const all = [events, thin_events, later.thin_events, newer.thin_events].flat()
    expect(all.length).toBeGreaterThanOrEqual(4)
    for (const { id, type } of all) {
      yield* eventually(`the receipt of ${type}`, Effect.map(outcomeOf(id), Option.fromNullable))
    }
    const told = yield* eventsOf(tenant)
    expect(told.length).toBeGreaterThanOrEqual(1)
    expect(told.at(-1)?.["data"]).toMatchObject({ charges_enabled: false, requirements: { past_due_count: 1 } })
    expect(new Set(told.map(({ data }) => JSON.stringify(data))).size).toBe(told.length)
  })
})
