import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { stripeName } from "../../src/events/Envelope.ts"
import { parseProviderEvent } from "../../src/events/stripe/ProviderEvent.ts"
import { stripeReader } from "../../src/events/stripe/Translate.ts"
import { decisionOf, envelopesOf } from "../../src/inbound/Decision.ts"
import { Inbound } from "../../src/inbound/Inbound.ts"
import { makeInboundRepo } from "../../src/inbound/InboundRepo.ts"
import { Provider } from "../../src/payments/Provider.ts"
import { paymentIntent, snapshot, subscription } from "../events/ProviderEvents.ts"
import { inDatabase, onSharedService, TestService } from "../harness/TestService.ts"
import {
  atEndpoints,
  makeNewTenant,
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  outcomeOf,
  signature,
  subscribe,
  type Tenant,
  unlink
} from "./Notifications.ts"

// What changes after a notification was looked up and before it is stored

const deliveriesTo = (endpointId: string) =>
  inDatabase<{ type: string; secrets: number }>`
    SELECT e.type, cardinality(d.secret_ids) AS secrets FROM payments.deliveries d JOIN payments.events e
      ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
    WHERE d.endpoint_id = ${endpointId} ORDER BY e.type`

const skippedBy = (endpointId: string) =>
  inDatabase`SELECT type FROM payments.skipped_events WHERE endpoint_id = ${endpointId}`

/** The provider's entry with a provider that answers the items of a subscription when it is let, and not before. */
const heldBack = Effect.gen(function* () {
  const { services } = yield* TestService
  const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const provider: Provider["Type"] = {
    ...Context.get(services, Provider),
    listSubscriptionItems: () =>
      Deferred.succeed(asked, undefined).pipe(
        Effect.zipRight(Deferred.await(answer)),
        Effect.as([
          { id: "si_1", price: { id: "price_1", product: "prod_1" } },
          { id: "si_2", price: { id: "price_2", product: "prod_2" } }
        ])
      )
  }
  const context = Context.add(services, Provider, provider)
  const inbound = Context.get(yield* Layer.build(Inbound.layer).pipe(Effect.provide(context)), Inbound)
  return {
    /** What becomes of a notification when something happens while the provider is asked about it. */
    receiveWhile: Effect.fnUntraced(function* <A, E, R>(body: string, happens: Effect.Effect<A, E, R>) {
      const receiving = yield* Effect.fork(inbound.receive(Buffer.from(body), signature(body)))
      yield* Deferred.await(asked)
      yield* happens
      yield* Deferred.succeed(answer, undefined)
      return yield* Fiber.join(receiving)
    })
  }
})

/** Of a subscription that sells more than its notification says. */
const cutOff = (tenant: Tenant, id: string) =>
  notification(tenant.accountId, {
    id,
    type: "customer.subscription.created",
    object: {
      ...subscription,
      items: { object: "list", data: [{ id: "si_1", price: { id: "price_1", product: "prod_1" } }], has_more: true }
    }
  })

onSharedService("while the provider is asked about a notification", (it) => {
  const setUp = Effect.gen(function* () {
    const { tenant, ...endpoint } = yield* makeSubscriber(["subscription.created"], undefined, { products: ["prod_2"] })
    const id = newEventId()
    const { receiveWhile } = yield* heldBack
    return {
      tenant,
      endpoint,
      id,
      receive: <A, E, R>(happens: Effect.Effect<A, E, R>) => receiveWhile(cutOff(tenant, id), happens)
    }
  })

  it.scoped("nothing happens: the endpoint gets it by what was fetched", function* () {
    const { endpoint, receive } = yield* setUp
    expect(yield* receive(Effect.void)).toBe("delivered")
    expect(yield* deliveriesTo(endpoint.id)).toEqual([{ type: "subscription.created", secrets: 1 }])
  })

  it.scoped("an endpoint is paused: it is told what it missed, and gets nothing", function* () {
    const { endpoint, receive, tenant } = yield* setUp
    expect(yield* receive(atEndpoints(tenant, "PATCH", `/${endpoint.id}`, { active: false }))).toBe("no_subscriber")
    expect(yield* deliveriesTo(endpoint.id)).toEqual([])
    expect(yield* skippedBy(endpoint.id)).toEqual([{ type: "subscription.created" }])
  })

  it.scoped("an endpoint is deleted: it gets nothing", function* () {
    const { endpoint, receive, tenant } = yield* setUp
    expect(yield* receive(atEndpoints(tenant, "DELETE", `/${endpoint.id}`))).toBe("no_subscriber")
    expect([yield* deliveriesTo(endpoint.id), yield* skippedBy(endpoint.id)]).toEqual([[], []])
  })

  it.scoped("a secret is rotated: both sign", function* () {
    const { endpoint, receive, tenant } = yield* setUp
    expect(yield* receive(atEndpoints(tenant, "POST", `/${endpoint.id}/rotate-secret`))).toBe("delivered")
    expect(yield* deliveriesTo(endpoint.id)).toEqual([{ type: "subscription.created", secrets: 2 }])
  })

  it.scoped("filters and endpoints change: those that hold now count", function* () {
    const { endpoint, receive, tenant } = yield* setUp
    let added = ""
    const change = Effect.gen(function* () {
      yield* atEndpoints(tenant, "PATCH", `/${endpoint.id}`, { filters: { products: ["prod_9"] } })
      const { id } = yield* subscribe(tenant, ["subscription.created"], undefined, { prices: ["price_2"] })
      added = id
    })
    expect(yield* receive(change)).toBe("delivered")
    expect([yield* deliveriesTo(endpoint.id), (yield* deliveriesTo(added)).length]).toEqual([[], 1])
  })

  for (const [what, end] of [
    ["unlinked", unlink],
    [
      "disconnected",
      ({ id }: Tenant) =>
        inDatabase`
          UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()
          WHERE organization_id = ${id}`
    ]
  ] as const) {
    it.scoped(`the account is ${what}: nothing is made of it`, function* () {
      const { endpoint, id, receive, tenant } = yield* setUp
      expect(yield* receive(Effect.asVoid<unknown, unknown, TestService>(end(tenant)))).toBe("unlinked")
      expect([yield* outcomeOf(id), yield* deliveriesTo(endpoint.id)]).toEqual(["unlinked", []])
      expect(yield* inDatabase`SELECT 1 FROM payments.events WHERE provider_event_id = ${id}`).toEqual([])
    })
  }
})

/** A payment that was looked up, to be stored when the test says so. */
const lookedUp = Effect.fnUntraced(function* (tenant: Tenant, id = newEventId()) {
  const { sql } = yield* TestService
  const receipts = yield* makeInboundRepo(null).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  const event = yield* parseProviderEvent(
    snapshot("payment_intent.succeeded", paymentIntent, { id, account: tenant.accountId })
  )
  const query = { environment: "sandbox", providerEventId: id, accountId: tenant.accountId, sold: null } as const
  const context = yield* Effect.fromNullable(yield* receipts.findContext(query))
  const envelopes = envelopesOf(
    { name: stripeName, reader: stripeReader },
    { environment: "sandbox", event, context, soldItems: null }
  )
  if (typeof envelopes === "string" || "_tag" in envelopes) return yield* Effect.dieMessage("It can be read")
  const store = receipts.insert({
    ...query,
    ...decisionOf(envelopes, context),
    type: event.type,
    livemode: false,
    providerCreatedAt: new Date(),
    receivedAt: new Date(),
    deauthorizes: false,
    traceparent: null
  })
  return { id, store }
})

onSharedService("between the look-up of a payment and its storing", (it) => {
  it.scoped("an endpoint is deleted, another paused, a third activated: each gets what is its due", function* () {
    const tenant = yield* makeTenant
    const [deleted, paused, activated, kept] = [
      yield* subscribe(tenant),
      yield* subscribe(tenant),
      yield* subscribe(tenant),
      yield* subscribe(tenant)
    ]
    yield* atEndpoints(tenant, "PATCH", `/${activated.id}`, { active: false })
    const { store } = yield* lookedUp(tenant)
    yield* atEndpoints(tenant, "DELETE", `/${deleted.id}`)
    yield* atEndpoints(tenant, "PATCH", `/${paused.id}`, { active: false })
    yield* atEndpoints(tenant, "PATCH", `/${activated.id}`, { active: true })
    expect(yield* store).toEqual({ first: true, outcome: "delivered", waits: true })
    for (const [{ id }, deliveries, skipped] of [
      [deleted, 0, 0],
      [paused, 0, 1],
      [activated, 1, 0],
      [kept, 1, 0]
    ] as const) {
      expect([(yield* deliveriesTo(id)).length, (yield* skippedBy(id)).length]).toEqual([deliveries, skipped])
    }
    expect(yield* store).toMatchObject({ first: false })
  })

  it.scoped("its only endpoint is deleted: the receipt says that nobody got it", function* () {
    const { tenant, ...endpoint } = yield* makeSubscriber()
    const { id, store } = yield* lookedUp(tenant)
    yield* atEndpoints(tenant, "DELETE", `/${endpoint.id}`)
    expect(yield* store).toEqual({ first: true, outcome: "no_subscriber", waits: false })
    expect(yield* outcomeOf(id)).toBe("no_subscriber")
  })

  for (const atOnce of [false, true]) {
    it.scoped(`another payment is first${atOnce ? ", at the same moment" : ""}: one has the milestone`, function* () {
      const tenant = yield* makeNewTenant
      const both = yield* subscribe(tenant, ["payment.succeeded", "milestone.first_payment"])
      const payments = [yield* lookedUp(tenant), yield* lookedUp(tenant), yield* lookedUp(tenant)]
      const stored = yield* Effect.forEach(payments, ({ store }) => store, {
        concurrency: atOnce ? "unbounded" : 1
      })
      expect(stored.map(({ outcome }) => outcome)).toEqual(["delivered", "delivered", "delivered"])
      expect((yield* deliveriesTo(both.id)).map(({ type }) => type)).toEqual([
        "milestone.first_payment",
        "payment.succeeded",
        "payment.succeeded",
        "payment.succeeded"
      ])
    })

    it.scoped(
      `another payment takes the milestone${atOnce ? " at the same moment" : ""}: of those that only it would be delivered of, one receipt says so`,
      function* () {
        const tenant = yield* makeNewTenant
        const endpoint = yield* subscribe(tenant, ["milestone.first_payment"])
        const payments = [yield* lookedUp(tenant), yield* lookedUp(tenant), yield* lookedUp(tenant)]
        const stored = yield* Effect.forEach(payments, ({ store }) => store, {
          concurrency: atOnce ? "unbounded" : 1
        })
        const outcomes = yield* Effect.forEach(payments, ({ id }) => outcomeOf(id))
        expect(stored.map(({ outcome }) => outcome)).toEqual(outcomes)
        expect(outcomes.toSorted()).toEqual(["delivered", "no_subscriber", "no_subscriber"])
        expect(yield* deliveriesTo(endpoint.id)).toHaveLength(1)
      }
    )
  }

  it.scoped("a copy of it is stored: one milestone, one receipt, whoever comes first", function* () {
    const tenant = yield* makeNewTenant
    const endpoint = yield* subscribe(tenant, ["payment.succeeded", "milestone.first_payment"])
    const copies = yield* Effect.replicateEffect(lookedUp(tenant, newEventId()), 6)
    const stored = yield* Effect.forEach(copies, ({ store }) => store, { concurrency: "unbounded" })
    expect(stored.filter(({ first }) => first)).toEqual([{ first: true, outcome: "delivered", waits: true }])
    expect((yield* deliveriesTo(endpoint.id)).map(({ type }) => type)).toEqual([
      "milestone.first_payment",
      "payment.succeeded"
    ])
  })
})
