import { createHash, randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { expect, expectTypeOf } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Redacted, Schema } from "effect"
import { embeddedEventsLayer } from "../../../src/app/Embedding.ts"
import { Deliveries } from "../../../src/destinations/deliveries/Deliveries.ts"
import { Endpoints } from "../../../src/destinations/endpoints/Endpoints.ts"
import { type OutboundEvent, OutboundEvents } from "../../../src/destinations/publishing/OutboundEvents.ts"
import { WakeUp } from "../../../src/engine/queue/WakeUp.ts"
import { EventCatalog } from "../../../src/events/EventCatalog.ts"
import { Organizations } from "../../../src/identity/organizations/Organizations.ts"
import { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { verifyWebhook } from "../../../src/webhooks/index.ts"
import { firstOf, makeConsumer } from "../../harness/Consumer.ts"
import { eventually } from "../../harness/Eventually.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { layer } from "../../harness/Tests.ts"
import { keyedHash } from "../../platform/storage/PartitionBed.ts"

const author = { kind: "operator", id: "shop" } as const

const catalog = [
  {
    type: "order.shipped",
    description: "An order left the warehouse.",
    data: Schema.Struct({ order_id: Schema.String, amount: Schema.Int, currency: Schema.String })
  },
  { type: "order.returned", description: "An order came back." }
] as const

const masterKeys = [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(3)) }] as const
const options = { source: "shop", catalog, masterKeys, settings: { allowLocalDestinations: true } }

const suite = Layer.provideMerge(
  embeddedEventsLayer(options),
  Layer.unwrapScoped(Effect.map(createTestDatabase(), ({ url }) => databaseLayer({ url })))
).pipe(Layer.orDie)

const newTenant = Effect.gen(function* () {
  const organizationId = OrganizationId.make(randomUUID())
  yield* (yield* Organizations).adopt({ id: organizationId, name: "Bakery", author })
  return { organizationId, environment: "sandbox" as const }
})

type Tenant = Effect.Effect.Success<typeof newTenant>

const subscribe = (
  tenant: Tenant,
  url: string,
  extra: { readonly events?: ReadonlyArray<string>; readonly filters?: Record<string, unknown> } = {}
) =>
  Effect.flatMap(Endpoints, (endpoints) =>
    endpoints.create(
      { ...tenant, author, permissions: new Set() },
      { name: "Shop", url, events: ["order.shipped"], ...extra }
    )
  )

const shipped = (tenant: Tenant, id: string): OutboundEvent => ({
  ...tenant,
  type: "order.shipped",
  id,
  data: { order_id: "o-1", amount: 500, currency: "brl" }
})

/** Nobody listens there: what is only counted need not arrive. */
const nowhere = "http://127.0.0.1:9/hook"

layer(suite)("a team's own events", (it) => {
  it.scoped("have ids of their own in each organization, under the same id of the team", function* () {
    const outbound = yield* OutboundEvents
    const one = yield* outbound.publish(shipped(yield* newTenant, "shared"))
    const other = yield* outbound.publish(shipped(yield* newTenant, "shared"))
    expect(other.duplicate).toBe(false)
    expect(other.eventId).not.toBe(one.eventId)
  })

  it.scoped("reach the endpoints that subscribe to them, signed, in the contract's envelope", function* () {
    const tenant = yield* newTenant
    const consumer = yield* makeConsumer
    const endpoint = yield* subscribe(tenant, consumer.url)
    const outbound = yield* OutboundEvents
    const createdAt = new Date("2026-03-01T10:00:00.000Z")
    const published = yield* outbound.publish({ ...shipped(tenant, "s-1"), createdAt })
    expect(published).toMatchObject({ deliveries: 1, skipped: 0, duplicate: false })
    const request = yield* firstOf(consumer)
    verifyWebhook({
      secret: endpoint.signingSecret,
      header: String(request.headers["service-signature"]),
      body: request.body
    })
    const digest = createHash("sha256")
      .update(`sandbox\n${tenant.organizationId}\nshop\ns-1\norder.shipped`)
      .digest("hex")
    expect(JSON.parse(request.body.toString("utf8"))).toEqual({
      id: `svc_evt_${digest}`,
      type: "order.shipped",
      version: 1,
      created_at: "2026-03-01T10:00:00.000Z",
      livemode: false,
      organization_id: tenant.organizationId,
      source: { provider: "shop", event_id: "s-1" },
      data: { order_id: "o-1", amount: 500, currency: "brl" }
    })
    const delivered = yield* eventually(
      "the history",
      Effect.map(
        Effect.flatMap(Deliveries, (deliveries) => deliveries.list(tenant, endpoint.id, {})),
        ({ data }) => Option.filter(Option.fromNullable(data[0]), ({ state }) => state === "delivered")
      )
    )
    expect(delivered).toMatchObject({ type: "order.shipped", eventId: published.eventId })
  })

  it.effect("are not stored where the transaction that they are part of fails", function* () {
    const tenant = yield* newTenant
    yield* subscribe(tenant, nowhere)
    const sql = yield* SqlClient.SqlClient
    const outbound = yield* OutboundEvents
    const failed = outbound.transact(Effect.zipRight(outbound.publish(shipped(tenant, "s-2")), Effect.fail("no stock")))
    expect(yield* Effect.flip(failed)).toBe("no stock")
    const rows = yield* sql`
        SELECT 1 FROM payments.events WHERE organization_id = ${tenant.organizationId}
        UNION ALL SELECT 1 FROM payments.deliveries WHERE organization_id = ${tenant.organizationId}`
    expect(rows).toHaveLength(0)
    yield* outbound.transact(outbound.publish(shipped(tenant, "s-2")))
    expect((yield* outbound.publish(shipped(tenant, "s-2"))).duplicate).toBe(true)
  })

  it.effect("are delivered once, however often and at once they are published under one id", function* () {
    const tenant = yield* newTenant
    const endpoint = yield* subscribe(tenant, nowhere)
    const outbound = yield* OutboundEvents
    const all = yield* Effect.replicateEffect(outbound.publish(shipped(tenant, "s-3")), 8).pipe(
      Effect.withConcurrency("unbounded")
    )
    expect(all.map(({ deliveries }) => deliveries).toSorted()).toEqual([0, 0, 0, 0, 0, 0, 0, 1])
    expect(new Set(all.map(({ eventId }) => eventId)).size).toBe(1)
    expect((yield* (yield* Deliveries).list(tenant, endpoint.id, {})).data).toHaveLength(1)
    const other = yield* outbound.publish({ ...tenant, type: "order.returned", id: "s-3", data: {} })
    expect(other).toMatchObject({ deliveries: 0, duplicate: false })
  })

  it.effect("pass the endpoint's filters, stay with their tenant, and are kept for paused endpoints", function* () {
    const [tenant, stranger] = [yield* newTenant, yield* newTenant]
    const endpoints = yield* Endpoints
    yield* subscribe(stranger, nowhere)
    yield* subscribe(tenant, nowhere, { filters: { amountMin: 501 } })
    yield* subscribe(tenant, nowhere, { filters: { metadata: { shop: "b" } } })
    yield* subscribe(tenant, nowhere, { filters: { metadata: { shop: "a" }, currencies: ["brl"] } })
    const paused = yield* subscribe(tenant, nowhere)
    yield* endpoints.update({ ...tenant, author, permissions: new Set() }, paused.id, { active: false })
    const event = { ...shipped(tenant, "s-4"), subjects: { metadata: { shop: "a" } } }
    expect(yield* (yield* OutboundEvents).publish(event)).toMatchObject({ deliveries: 1, skipped: 1 })
    expect((yield* endpoints.listSkipped(tenant, paused.id, {})).data).toMatchObject([{ type: "order.shipped" }])
  })

  it.effect("take the data of their type alone, by the catalog that the publisher was given", function* () {
    const tenant = yield* newTenant
    const publish = OutboundEvents.publisher(catalog)
    type Event = Parameters<typeof publish>[0]
    type DataOf<Type extends Event["type"]> = Extract<Event, { readonly type: Type }>["data"]
    expectTypeOf<Event["type"]>().toEqualTypeOf<"order.shipped" | "order.returned">()
    expectTypeOf<DataOf<"order.shipped">>().toEqualTypeOf<{
      readonly order_id: string
      readonly amount: number
      readonly currency: string
    }>()
    expectTypeOf<DataOf<"order.returned">>().toEqualTypeOf<Readonly<Record<string, unknown>>>()
    type Unfit = Tenant & { readonly type: "order.shipped"; readonly data: { readonly order_id: number } }
    expectTypeOf<Unfit>().not.toExtend<Event>()
    const data = { order_id: "o-1", amount: 500, currency: "brl" }
    expect((yield* publish({ ...tenant, type: "order.shipped", id: "s-6", data })).duplicate).toBe(false)
    expect((yield* (yield* OutboundEvents).publish(shipped(tenant, "s-6"))).duplicate).toBe(true)
    expect((yield* publish({ ...tenant, type: "order.returned", data: { why: "cold" } })).duplicate).toBe(false)
  })

  it.effect("are refused, with nothing stored, where the catalog or the form does not allow them", function* () {
    const tenant = yield* newTenant
    const outbound = yield* OutboundEvents
    const reasonOf = (event: OutboundEvent) =>
      Effect.map(Effect.flip(outbound.publish(event)), (error) =>
        error._tag === "EventNotPublishable" ? error.reason : error._tag
      )
    const good = shipped(tenant, "s-5")
    expect(yield* reasonOf({ ...good, type: "payment.succeeded" })).toBe("unknown_type")
    expect(yield* reasonOf({ ...good, data: { order_id: "o-1", amount: 1.5, currency: "brl" } })).toBe("invalid_data")
    expect(yield* reasonOf({ ...tenant, type: "order.returned", data: { count: 1n } })).toBe("invalid_data")
    // With the envelope around it, of which 256 KiB are allowed, in bytes
    const why = (length: number) => ({ ...tenant, type: "order.returned", data: { why: "é".repeat(length) } })
    expect(yield* reasonOf(why(128 * 1024))).toBe("too_large")
    expect((yield* outbound.publish(why(127 * 1024))).duplicate).toBe(false)
    expect(yield* reasonOf({ ...good, id: "" })).toBe("invalid_id")
    expect(yield* reasonOf({ ...good, id: "a\nb" })).toBe("invalid_id")
    expect(yield* reasonOf({ ...good, organizationId: OrganizationId.make(randomUUID()) })).toBe("unknown_organization")
    expect((yield* outbound.publish(good)).duplicate).toBe(false)
  })

  it.effect("are the types that endpoints may subscribe to, and that their list shows", function* () {
    const tenant = yield* newTenant
    const list = yield* (yield* Endpoints).list(tenant)
    expect(list.eventTypes).toEqual(catalog.map(({ description, type }) => ({ type, description })))
    for (const events of [["payment.succeeded"], [], ["order.shipped", "order.shipped"]]) {
      const error = yield* Effect.flip(subscribe(tenant, nowhere, { events }))
      expect(error._tag === "ValidationFailed" && error.fields, events.join()).toEqual(["events"])
    }
  })

  it.effect("come from a source that can't be taken for the provider, and have distinct types", function* () {
    for (const source of ["stripe", "svc_test", "", "Shop", "a b", "a\nb", "x".repeat(41)]) {
      const made = Layer.build(OutboundEvents.layer({ source })).pipe(
        Effect.provide([WakeUp.layer, keyedHash]),
        Effect.scoped
      )
      expect(Exit.isFailure(yield* Effect.exit(made)), source).toBe(true)
    }
    const entry = { type: "order.shipped", description: "An order left the warehouse." }
    const types = ["", "Order", "order shipped", ".shipped", "a".repeat(101)].map((type) => [{ ...entry, type }])
    for (const entries of [...types, [entry, entry]]) {
      const made = Effect.scoped(Layer.build(EventCatalog.layer(entries)))
      expect(Exit.isFailure(yield* Effect.exit(made)), JSON.stringify(entries)).toBe(true)
    }
  })
})
