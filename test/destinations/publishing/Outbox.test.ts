import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Duration, Effect, Layer, Redacted, Schema } from "effect"
import { embeddedEventsLayer } from "../../../src/app/Embedding.ts"
import { Endpoints } from "../../../src/destinations/endpoints/Endpoints.ts"
import { makeOutboxRepo } from "../../../src/destinations/publishing/OutboxRepo.ts"
import { Organizations } from "../../../src/identity/organizations/Organizations.ts"
import { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { type Consumer, firstOf, makeConsumer } from "../../harness/Consumer.ts"
import { eventuallyIs, eventuallyTrue } from "../../harness/Eventually.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { expect, layer } from "../../harness/Tests.ts"

const author = { kind: "operator", id: "shop" } as const
const masterKeys = [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(3)) }] as const
const catalog = [
  { type: "order.shipped", description: "An order left.", data: Schema.Struct({ order_id: Schema.String }) }
] as const

const suite = Layer.provideMerge(
  embeddedEventsLayer({ source: "shop", catalog, masterKeys, settings: { allowLocalDestinations: true } }),
  Layer.unwrapScoped(Effect.map(createTestDatabase(), ({ url }) => databaseLayer({ url })))
).pipe(Layer.orDie)

/** A tenant with an endpoint for the catalog's events, and that endpoint's server. */
const subscribed = Effect.gen(function* () {
  const organizationId = OrganizationId.make(randomUUID())
  yield* (yield* Organizations).adopt({ id: organizationId, name: "Bakery", author })
  const consumer = yield* makeConsumer
  yield* (yield* Endpoints).create(
    { organizationId, environment: "sandbox", author, permissions: new Set() },
    { name: "Shop", url: consumer.url, events: ["order.shipped"] }
  )
  return { organizationId, consumer }
})

const publish = (organizationId: string, id: string, data: unknown, type = "order.shipped", environment = "sandbox") =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`SELECT payments.publish(${organizationId}, ${environment}, ${id}, ${type}, ${JSON.stringify(data)}::json)`
  )

const bodies = ({ received }: Consumer): ReadonlyArray<{ readonly source: unknown; readonly data: unknown }> =>
  received.map(({ body }) => JSON.parse(body.toString()))

const waiting = (organizationId: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ id: string; refusal: string | null }>`
      SELECT id, refusal FROM payments.outbox WHERE organization_id = ${organizationId} ORDER BY place`
  )

layer(suite)("an event published by SQL", (it) => {
  it.scoped("is delivered once its transaction has committed, and never if that was rolled back", function* () {
    const sql = yield* SqlClient.SqlClient
    const { consumer, organizationId } = yield* subscribed
    yield* sql`CREATE TABLE IF NOT EXISTS orders (id text)`
    yield* sql
      .withTransaction(Effect.zipRight(publish(organizationId, "o-1", { order_id: "o-1" }), Effect.fail("no")))
      .pipe(Effect.ignore)
    yield* sql.withTransaction(
      Effect.zipRight(sql`INSERT INTO orders VALUES ('o-2')`, publish(organizationId, "o-2", { order_id: "o-2" }))
    )
    yield* firstOf(consumer)
    expect(bodies(consumer)).toMatchObject([
      { source: { provider: "shop", event_id: "o-2" }, data: { order_id: "o-2" } }
    ])
    expect(yield* waiting(organizationId)).toEqual([])
  })

  it.scoped("is one event however often it is published, also from a trigger", function* () {
    const sql = yield* SqlClient.SqlClient
    const { consumer, organizationId } = yield* subscribed
    yield* sql`CREATE TABLE shipments (id text, organization uuid)`
    yield* sql`
      CREATE FUNCTION shipped() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM payments.publish(NEW.organization, 'sandbox', NEW.id, 'order.shipped', json_build_object('order_id', NEW.id));
        RETURN NEW;
      END $$`
    yield* sql`CREATE TRIGGER shipped AFTER INSERT ON shipments FOR EACH ROW EXECUTE FUNCTION shipped()`
    yield* sql`INSERT INTO shipments VALUES ('s-1', ${organizationId}), ('s-1', ${organizationId}), ('s-2', ${organizationId})`
    yield* eventuallyTrue("both deliveries", () => consumer.received.length >= 2)
    yield* eventuallyIs("an empty outbox", waiting(organizationId), ({ length }) => length === 0)
    expect(new Set(consumer.received.map(({ body }) => JSON.parse(body.toString()).data.order_id))).toEqual(
      new Set(["s-1", "s-2"])
    )
    expect(consumer.received).toHaveLength(2)
  })

  it.scoped(
    "that the catalog refuses is kept with the reason, holds back no other, and goes after its retention",
    function* () {
      const { consumer, organizationId } = yield* subscribed
      yield* publish(organizationId, "bad-1", { order_id: 7 })
      yield* publish(organizationId, "bad-2", {}, "order.unheard_of")
      yield* publish(organizationId, "good", { order_id: "good" })
      yield* firstOf(consumer)
      expect(bodies(consumer)).toMatchObject([{ data: { order_id: "good" } }])
      expect(yield* waiting(organizationId)).toMatchObject([
        { id: "bad-1", refusal: expect.stringContaining("invalid_data") },
        { id: "bad-2", refusal: expect.stringContaining("unknown_type") }
      ])
      const repo = yield* makeOutboxRepo
      yield* repo.removeRefused(Duration.days(1))
      expect(yield* waiting(organizationId)).toHaveLength(2)
      yield* repo.removeRefused(Duration.zero)
      expect(yield* waiting(organizationId)).toEqual([])
    }
  )

  it.scoped(
    "fails in its own transaction for an unknown tenant, an id that is none, and data that is no object or too large",
    function* () {
      const { organizationId } = yield* subscribed
      const reasonOf = (attempt: ReturnType<typeof publish>) =>
        Effect.map(Effect.flip(attempt), ({ cause }) => (cause instanceof Error ? cause.message : ""))
      expect(yield* reasonOf(publish(randomUUID(), "o", {}))).toContain("there is no organization")
      expect(yield* reasonOf(publish(organizationId, "o", {}, "order.shipped", "staging"))).toContain("no organization")
      expect(yield* reasonOf(publish(organizationId, "", {}))).toContain("1 to 255 printable characters")
      expect(yield* reasonOf(publish(organizationId, "a\nb", {}))).toContain("1 to 255 printable characters")
      expect(yield* reasonOf(publish(organizationId, "x".repeat(256), {}))).toContain("1 to 255 printable characters")
      for (const data of [[], "text", null, { order_id: "x".repeat(262_144) }]) {
        expect(yield* reasonOf(publish(organizationId, "o", data))).toContain("a JSON object of at most")
      }
      expect(yield* waiting(organizationId)).toEqual([])
    }
  )

  it.scoped("needs no right but to execute the function", function* () {
    const sql = yield* SqlClient.SqlClient
    const { consumer, organizationId } = yield* subscribed
    const role = `shop_${randomUUID().slice(0, 8)}`
    yield* sql`CREATE ROLE ${sql(role)}`
    yield* sql`GRANT USAGE ON SCHEMA payments TO ${sql(role)}`
    yield* sql.withTransaction(
      Effect.zipRight(sql`SET LOCAL ROLE ${sql(role)}`, publish(organizationId, "o-9", { order_id: "o-9" }))
    )
    yield* firstOf(consumer)
    yield* sql`DROP OWNED BY ${sql(role)}`
    yield* sql`DROP ROLE ${sql(role)}`
  })
})
