import { SqlClient } from "@effect/sql"
import { expect, it as pure } from "@effect/vitest"
import { Effect, Either } from "effect"
import type { FoundContext } from "../../src/inbound/ContextStatement.ts"
import { makeInboundRepo, RememberedContexts } from "../../src/inbound/InboundRepo.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import type { EndpointId } from "../../src/platform/kit/Ids.ts"
import { OrganizationId } from "../../src/platform/kit/Ids.ts"
import { inDatabase, onSharedService, serviceOf, TestService } from "../harness/TestService.ts"
import {
  anyReceipt,
  atEndpoints,
  makeNewTenant,
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  notify,
  outcomeOf,
  subscribe,
  type Tenant,
  typesTo,
  unlink
} from "./Notifications.ts"

const pay = Effect.fnUntraced(function* (tenant: Tenant) {
  const id = newEventId()
  yield* notify(notification(tenant.accountId, { id }))
  return yield* outcomeOf(id)
})

const secretCounts = (endpointId: string) =>
  Effect.map(
    inDatabase<{ secrets: number }>`
      SELECT cardinality(secret_ids) AS secrets FROM payments.deliveries
      WHERE endpoint_id = ${endpointId} ORDER BY created_at`,
    (rows) => rows.map(({ secrets }) => secrets)
  )

onSharedService("a payment of an account that had one just before", (it) => {
  /** A tenant with an endpoint, whose context is remembered by now. */
  const remembered = Effect.gen(function* () {
    const { tenant, ...endpoint } = yield* makeSubscriber()
    expect(yield* pay(tenant)).toBe("delivered")
    expect(yield* pay(tenant)).toBe("delivered")
    return { tenant, endpoint }
  })

  it.scoped("goes to an endpoint that was created in between", function* () {
    const { tenant } = yield* remembered
    const created = yield* subscribe(tenant)
    yield* pay(tenant)
    expect(yield* typesTo(created.id)).toEqual(["payment.succeeded"])
  })

  it.scoped("goes to none that was paused, and is told as skipped", function* () {
    const { endpoint, tenant } = yield* remembered
    yield* atEndpoints(tenant, "PATCH", `/${endpoint.id}`, { active: false })
    expect(yield* pay(tenant)).toBe("no_subscriber")
    expect(yield* inDatabase`SELECT type FROM payments.skipped_events WHERE endpoint_id = ${endpoint.id}`).toHaveLength(
      1
    )
    yield* atEndpoints(tenant, "PATCH", `/${endpoint.id}`, { active: true })
    expect(yield* pay(tenant)).toBe("delivered")
  })

  it.scoped("goes by the events and filters that an endpoint has now", function* () {
    const { endpoint, tenant } = yield* remembered
    yield* atEndpoints(tenant, "PATCH", `/${endpoint.id}`, { filters: { amountMin: 100_000_000 } })
    expect(yield* pay(tenant)).toBe("no_subscriber")
    yield* atEndpoints(tenant, "PATCH", `/${endpoint.id}`, { filters: {} })
    expect(yield* pay(tenant)).toBe("delivered")
    yield* atEndpoints(tenant, "PATCH", `/${endpoint.id}`, { events: ["payment.failed"] })
    expect(yield* pay(tenant)).toBe("no_subscriber")
  })

  it.scoped("goes to none that was deleted", function* () {
    const { endpoint, tenant } = yield* remembered
    yield* atEndpoints(tenant, "DELETE", `/${endpoint.id}`)
    expect(yield* pay(tenant)).toBe("no_subscriber")
    expect(yield* typesTo(endpoint.id)).toHaveLength(2)
  })

  it.scoped("is signed with the secret that an endpoint has now", function* () {
    const { endpoint, tenant } = yield* remembered
    yield* atEndpoints(tenant, "POST", `/${endpoint.id}/rotate-secret`)
    yield* pay(tenant)
    expect(yield* secretCounts(endpoint.id)).toEqual([1, 1, 2])
  })

  it.scoped("concerns nobody if the account was disconnected or unlinked in between", function* () {
    const { tenant } = yield* remembered
    const disconnect = (status: "connected" | "disconnected") => inDatabase`
      UPDATE payments.provider_accounts SET status = ${status},
        disconnected_at = ${status === "connected" ? null : new Date()} WHERE account_id = ${tenant.accountId}`
    yield* disconnect("disconnected")
    expect(yield* pay(tenant)).toBe("unlinked")
    yield* disconnect("connected")
    expect(yield* pay(tenant)).toBe("delivered")
    yield* unlink(tenant)
    expect(yield* pay(tenant)).toBe("unlinked")
  })

  it.scoped("goes to the organization that the account is linked to now", function* () {
    const { endpoint, tenant } = yield* remembered
    const other = yield* makeTenant
    const otherEndpoint = yield* subscribe(other)
    for (const one of [tenant, other]) yield* unlink(one)
    yield* (yield* serviceOf(Accounts)).link({ organizationId: other.id, environment: "sandbox" }, tenant.accountId)
    yield* pay(tenant)
    expect(yield* typesTo(endpoint.id)).toHaveLength(2)
    expect(yield* typesTo(otherEndpoint.id)).toContain("payment.succeeded")
  })

  it.scoped("is not looked up again, but stored by what was, and only while that is true", function* () {
    const { sql } = yield* TestService
    const receipts = yield* makeInboundRepo(null).pipe(Effect.provideService(SqlClient.SqlClient, sql))
    const { tenant } = yield* makeSubscriber()
    const query = {
      environment: "sandbox",
      providerEventId: newEventId(),
      accountId: tenant.accountId,
      sold: null
    } as const
    expect(yield* receipts.cachedContext(query)).toMatchObject({ version: null })
    const recalled = yield* Effect.fromNullable(yield* receipts.cachedContext(query))
    const version = yield* Effect.fromNullable(recalled.version)
    const store = receipts.insertCached(
      {
        ...anyReceipt(tenant.accountId, tenant.id),
        ...query
      },
      version
    )
    yield* subscribe(tenant)
    expect(yield* Effect.either(store)).toMatchObject(Either.left({ _tag: "TenantChanged" }))
    expect(yield* outcomeOf(query.providerEventId)).toBeUndefined()
    // What was found to be wrong is forgotten
    expect(yield* receipts.cachedContext(query)).toMatchObject({ version: null })
  })
})

onSharedService("the first payment of an account", (it) => {
  it.scoped("makes its milestone, whatever was remembered of the account", function* () {
    const tenant = yield* makeNewTenant
    const endpoint = yield* subscribe(tenant, ["milestone.first_payment"])
    const other = notification(tenant.accountId, { type: "payment_intent.payment_failed" })
    for (let n = 0; n < 2; n += 1) yield* notify(other)
    expect(yield* pay(tenant)).toBe("delivered")
    expect(yield* pay(tenant)).toBe("no_subscriber")
    expect(yield* typesTo(endpoint.id)).toEqual(["milestone.first_payment"])
  })
})

const contextWith = (endpoints: number): FoundContext => ({
  organizationId: OrganizationId.make("018f4d3e-7b1a-7cc2-9d52-0a4f8e6b1c21"),
  connected: true,
  endpoints: Array.from({ length: endpoints }, (_, index) => ({
    endpointId: `endpoint ${index}` as EndpointId,
    active: true,
    events: [],
    filters: {},
    secretIds: []
  })),
  offered: null,
  awaitsFirstPayment: false,
  version: "1"
})

pure("remembered contexts are bounded by their endpoints, and the oldest go first", () => {
  const contexts = new RememberedContexts()
  for (let n = 0; n < 300; n += 1) contexts.put(`account ${n}`, contextWith(100))
  expect(contexts.get("account 299")).toBeDefined()
  expect(contexts.get("account 0")).toBeUndefined()
  const kept = Array.from({ length: 300 }, (_, n) => contexts.get(`account ${n}`)).filter((one) => one !== undefined)
  expect(kept.length * 100).toBeLessThanOrEqual(10_000)
  expect(kept.length).toBeGreaterThan(75)
})

pure("accounts that are not connected, or await their first payment, are not remembered", () => {
  const contexts = new RememberedContexts()
  contexts.put("a", { ...contextWith(1), connected: false })
  contexts.put("b", { ...contextWith(1), awaitsFirstPayment: true })
  contexts.put("c", contextWith(10_001))
  expect(["a", "b", "c"].map((key) => contexts.get(key))).toEqual([undefined, undefined, undefined])
})
