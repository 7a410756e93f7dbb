import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { paymentIntent } from "../events/ProviderEvents.ts"
import { inDatabase, onSharedServiceWithWorker, TestService } from "../harness/TestService.ts"
import {
  accepted,
  asTenant,
  makeNewTenant,
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  notify,
  notifyThin,
  outcomeOf,
  setActive,
  subscribe,
  thinNotification,
  typesTo
} from "./Notifications.ts"

const received = (body: string) => Effect.map(notify(body), ({ status }) => expect(status).toBe(200))

onSharedServiceWithWorker("what a notification leads to", (it) => {
  it.scoped("is the milestone once, of fifty first payments at once, beside each payment's own event", function* () {
    const tenant = yield* makeNewTenant
    const endpoint = yield* subscribe(tenant, ["payment.succeeded", "milestone.first_payment"])
    const bodies = Array.from({ length: 50 }, (_, index) =>
      notification(tenant.accountId, { object: { ...paymentIntent, id: `pi_${index}` } })
    )
    yield* Effect.forEach(bodies, received, { concurrency: 50 })
    const types = yield* typesTo(endpoint.id)
    expect(types.filter((type) => type === "milestone.first_payment")).toHaveLength(1)
    expect(types.filter((type) => type === "payment.succeeded")).toHaveLength(50)
    yield* received(notification(tenant.accountId))
    expect(yield* typesTo(endpoint.id)).toHaveLength(52)
  })

  it.scoped("is no milestone where the account had payments before, nor for one that fails", function* () {
    const old = yield* makeTenant
    const oldEndpoint = yield* subscribe(old, ["milestone.first_payment"])
    yield* received(notification(old.accountId))
    expect(yield* typesTo(oldEndpoint.id)).toEqual([])

    const young = yield* makeNewTenant
    const endpoint = yield* subscribe(young, ["milestone.first_payment"])
    yield* received(
      notification(young.accountId, {
        type: "payment_intent.payment_failed",
        object: { ...paymentIntent, status: "requires_payment_method" }
      })
    )
    expect(yield* typesTo(endpoint.id)).toEqual([])
    yield* received(notification(young.accountId))
    expect(yield* typesTo(endpoint.id)).toEqual(["milestone.first_payment"])
  })

  it.scoped("respects each endpoint's filters, for the milestone too; changes count from then on", function* () {
    const tenant = yield* makeNewTenant
    const types = ["payment.succeeded", "milestone.first_payment"]
    const large = yield* subscribe(tenant, types, undefined, { amountMin: 10_000 })
    const brl = yield* subscribe(tenant, types, undefined, { currencies: ["brl"], amountMax: 1500 })
    const product = yield* subscribe(tenant, types, undefined, { products: ["prod_1"] })
    yield* received(notification(tenant.accountId))
    expect(yield* typesTo(large.id)).toEqual([])
    expect(yield* typesTo(product.id)).toEqual([])
    expect(yield* typesTo(brl.id)).toEqual(["milestone.first_payment", "payment.succeeded"])

    const change = yield* asTenant(tenant, "PATCH", `/endpoints/${large.id}`, {
      body: { filters: { amountMin: 1500 } }
    })
    expect(change.json["filters"]).toEqual({ amountMin: 1500 })
    yield* received(notification(tenant.accountId))
    expect(yield* typesTo(large.id)).toEqual(["payment.succeeded"])
  })

  it.scoped("is nothing more once the account gave access back, until it is linked again", function* () {
    const { sql } = yield* TestService
    const { tenant, ...endpoint } = yield* makeSubscriber()
    const body = notification(tenant.accountId, {
      id: newEventId(),
      created: Math.floor(Date.now() / 1000),
      type: "account.application.deauthorized",
      object: { id: "ca_1", object: "application" }
    })
    yield* received(body)
    const accountOf = sql<{ status: string }>`
        SELECT status FROM payments.provider_accounts WHERE account_id = ${tenant.accountId}`
    expect(yield* accountOf).toEqual([{ status: "disconnected" }])
    const disconnections = sql`
        SELECT organization_id, environment, author_kind, author_id, action, target_type, request_id LIKE 'req\_%' AS named
        FROM payments.audit_log WHERE target_id = ${tenant.accountId} AND action = 'account.disconnected'`
    const recorded = [
      {
        organization_id: tenant.id,
        environment: "sandbox",
        author_kind: "provider",
        author_id: "stripe",
        action: "account.disconnected",
        target_type: "account",
        named: true
      }
    ]
    expect(yield* disconnections).toEqual(recorded)
    yield* received(notification(tenant.accountId))
    expect(yield* typesTo(endpoint.id)).toEqual([])

    // Linked again by hand; a late copy of the old notification must not undo that
    yield* sql`
        UPDATE payments.provider_accounts SET status = 'connected', disconnected_at = NULL
        WHERE account_id = ${tenant.accountId}`
    yield* received(body)
    expect(yield* accountOf).toEqual([{ status: "connected" }])
    expect(yield* disconnections).toEqual(recorded)
  })

  for (const [form, deauthorize] of [
    [
      "snapshot",
      (accountId: string, options: { readonly id: string; readonly created: number; readonly livemode: boolean }) =>
        notify(
          notification(accountId, {
            ...options,
            type: "account.application.deauthorized",
            object: { id: "ca_1", object: "application" }
          })
        )
    ],
    [
      "thin",
      (accountId: string, options: { readonly id: string; readonly created: number; readonly livemode: boolean }) =>
        notifyThin(thinNotification(accountId, { ...options, type: "v1.account.application.deauthorized" }))
    ]
  ] as const) {
    it.effect(`leaves the account connected where the other mode's access was given back, in a ${form}`, function* () {
      const { tenant, ...endpoint } = yield* makeSubscriber()
      const created = Math.floor(Date.now() / 1000)
      const statusOf = inDatabase<{ status: string }>`
        SELECT status FROM payments.provider_accounts WHERE account_id = ${tenant.accountId}`
      const id = newEventId()
      expect((yield* deauthorize(tenant.accountId, { id, created, livemode: true })).status).toBe(503)
      expect(yield* statusOf).toEqual([{ status: "connected" }])
      yield* received(notification(tenant.accountId))
      expect(yield* typesTo(endpoint.id)).toEqual(["payment.succeeded"])
      yield* accepted(deauthorize(tenant.accountId, { id: newEventId(), created, livemode: false }))
      expect(yield* statusOf).toEqual([{ status: "disconnected" }])
    })
  }

  it.effect("is recorded as skipped by the paused endpoints that it matches, with the event", function* () {
    const tenant = yield* makeNewTenant
    const types = ["payment.succeeded", "milestone.first_payment"]
    const matching = yield* subscribe(tenant, types)
    const filtered = yield* subscribe(tenant, types, undefined, { amountMin: 10_000 })
    const other = yield* subscribe(tenant, ["payment.failed"])
    for (const endpoint of [matching, filtered, other]) yield* setActive(tenant, endpoint, false)
    const skipped = inDatabase`
      SELECT s.endpoint_id AS endpoint, s.type, s.provider_event_id AS "providerEventId", e.type AS "eventType",
        s.created_at > now() - interval '1 minute' AS "isRecent"
      FROM payments.skipped_events s JOIN payments.events e
        ON e.organization_id = s.organization_id AND e.environment = s.environment AND e.id = s.event_key
      WHERE s.organization_id = ${tenant.id} AND s.environment = 'sandbox' ORDER BY s.type`
    const id = newEventId()
    const body = notification(tenant.accountId, { id })
    yield* received(body)
    yield* received(body)
    const row = { endpoint: matching.id, providerEventId: id, isRecent: true }
    expect(yield* skipped).toEqual([
      { ...row, type: "milestone.first_payment", eventType: "milestone.first_payment" },
      { ...row, type: "payment.succeeded", eventType: "payment.succeeded" }
    ])
    expect(yield* outcomeOf(id)).toBe("no_subscriber")
    expect(yield* typesTo(matching.id)).toEqual([])

    const active = yield* subscribe(tenant)
    const second = newEventId()
    yield* received(notification(tenant.accountId, { id: second }))
    expect(yield* outcomeOf(second)).toBe("delivered")
    expect(yield* typesTo(active.id)).toEqual(["payment.succeeded"])
    expect(yield* skipped).toHaveLength(3)

    yield* setActive(tenant, matching, true)
    yield* received(notification(tenant.accountId))
    expect(yield* skipped).toHaveLength(3)
    expect(yield* typesTo(matching.id)).toEqual(["payment.succeeded"])
  })
})
