import { randomBytes, randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import { v7 } from "uuid"
import { eventKey } from "../../../src/destinations/publishing/Publication.ts"
import { slotOf } from "../../../src/destinations/statistics/Slots.ts"
import { Statistics } from "../../../src/destinations/statistics/Statistics.ts"
import type { Environment } from "../../../src/platform/kit/Environment.ts"
import { EndpointId, OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { SlowReads } from "../../../src/platform/kit/SlowReads.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"

export const minute = 60_000
export const hour = 60 * minute

export type State = "queued" | "delivered" | "failed"

/** What a test stores, and the database's clock, which it can set forward. */
export class Bench extends Context.Tag("test/Statistics/Bench")<
  Bench,
  { readonly sql: SqlClient.SqlClient; readonly processes: readonly [Statistics["Type"], Statistics["Type"]] }
>() {
  static readonly layer = Layer.scoped(
    Bench,
    Effect.gen(function* () {
      const { name, url } = yield* createMigratedDatabase
      const own = { url, poolSize: 4 }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = Context.get(yield* Layer.build(databaseLayer(own)), SqlClient.SqlClient)
          yield* first`CREATE SCHEMA clock`
          yield* first`CREATE TABLE clock.ahead (millis float8)`
          yield* first`INSERT INTO clock.ahead VALUES (0)`
          yield* first.unsafe(`
            CREATE FUNCTION clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
              SELECT pg_catalog.now() + (SELECT millis FROM clock.ahead) * interval '1 millisecond'
            $$`)
          yield* first.unsafe(`ALTER DATABASE "${name}" SET search_path = clock, pg_catalog`)
        })
      )
      const database = yield* Layer.build(databaseLayer(own))
      const sql = Context.get(database, SqlClient.SqlClient)
      const process = Effect.map(
        Layer.build(Layer.provide(Layer.fresh(Statistics.layer), SlowReads.layer({ databasePoolSize: 10 }))).pipe(
          Effect.provide(database)
        ),
        Context.get(Statistics)
      )
      return { sql, processes: [yield* process, yield* process] as const }
    })
  ).pipe(Layer.orDie)
}

export const forward = (millis: number) =>
  Effect.flatMap(Bench, ({ sql }) => sql`UPDATE clock.ahead SET millis = millis + ${millis}`)

export const timeNow = Effect.flatMap(Bench, ({ sql }) =>
  Effect.map(sql<{ now: Date }>`SELECT clock.now() AS now`, ([row]) => row?.now.getTime() ?? 0)
)

/**
 * Nothing is stored, and nothing is counted. The database's clock goes to five in the morning (UTC) whenever the test
 * runs: an hour ago was the same day, seven hours ago was the day before.
 */
export const empty = Effect.gen(function* () {
  const { sql } = yield* Bench
  yield* Effect.forEach(
    ["deliveries", "events", "payment_counts", "delivery_counts", "unsettled_deliveries", "refunded_in_part"],
    (table) => sql.unsafe(`DELETE FROM payments.${table}`)
  )
  const now = yield* timeNow
  const morning = Math.floor(now / (24 * hour)) * 24 * hour + 5 * hour
  yield* forward((morning > now ? morning : morning + 24 * hour) - now)
})

/** The counts begin at a time, as if nothing had been stored before. */
export const beginAt = (millis: number) =>
  Effect.flatMap(Bench, ({ sql }) => {
    const time = new Date(slotOf(millis)).toISOString()
    return sql`UPDATE payments.count_passes SET since = ${time}::timestamptz, until = ${time}::timestamptz`
  })

export const count = Effect.flatMap(Bench, ({ processes }) => processes[0].count)

export interface Shop {
  readonly organizationId: OrganizationId
  readonly environment: Environment
}

/** A tenant with both workspaces, and no endpoints. */
export const makeShop = Effect.gen(function* () {
  const { sql } = yield* Bench
  const organizationId = OrganizationId.make(randomUUID())
  yield* sql`INSERT INTO payments.organizations (id, name) VALUES (${organizationId}, 'Bakery')`
  yield* sql`
    INSERT INTO payments.workspaces (organization_id, environment)
    VALUES (${organizationId}, 'sandbox'), (${organizationId}, 'production')`
  return {
    sandbox: { organizationId, environment: "sandbox" } satisfies Shop,
    production: { organizationId, environment: "production" } satisfies Shop
  }
})

export const makeEndpoint = Effect.fnUntraced(function* ({ environment, organizationId }: Shop) {
  const { sql } = yield* Bench
  const id = EndpointId.make(v7())
  yield* sql`
    INSERT INTO payments.endpoints (organization_id, environment, id, name, url)
    VALUES (${organizationId}, ${environment}, ${id}, 'Shop', 'https://shop.example/hook')`
  return id
})

/** A shop with an endpoint beside which nothing is stored, and whose counts begin so long ago. */
export const countedShop = Effect.fnUntraced(function* (ago: number) {
  yield* empty
  const { sandbox } = yield* makeShop
  const endpoint = yield* makeEndpoint(sandbox)
  const now = yield* timeNow
  yield* beginAt(now - ago)
  return { sandbox, endpoint, now }
})

/** Sets the clock forward, and counts what is stored from a minute before on, and what may have changed. */
export const countAfter = (millis: number) =>
  Effect.gen(function* () {
    yield* forward(millis)
    yield* beginAt((yield* timeNow) - minute)
    yield* count
  })

export const deliver = Effect.fnUntraced(function* (
  { environment, organizationId }: Shop,
  endpointId: EndpointId,
  options: {
    readonly at: number
    readonly state?: State
    readonly count?: number
    readonly test?: boolean
    readonly ids?: ReadonlyArray<string>
  }
) {
  const { sql } = yield* Bench
  const { at, state = "delivered", test = false } = options
  const ids = options.ids ?? Array.from({ length: options.count ?? 1 }, () => v7({ msecs: at }))
  yield* sql`SELECT payments.add_day(payments.day_of(id)) FROM unnest(${ids.slice(0, 1)}::uuid[]) AS id`
  yield* sql`
    INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state, test,
      attempts, finished_at)
    SELECT ${organizationId}, ${environment}, id, ${endpointId}, 'e', ARRAY[id], ${state}, ${test}, '{}',
      CASE WHEN ${state !== "queued"} THEN to_timestamp(${at / 1000}::float8) END
    FROM unnest(${ids}::uuid[]) AS id`
  return ids
})

export const setState = (ids: ReadonlyArray<string>, state: State) =>
  Effect.flatMap(
    Bench,
    ({ sql }) => sql`
      UPDATE payments.deliveries SET state = ${state}, finished_at = CASE WHEN ${state !== "queued"} THEN pg_catalog.now() END
      WHERE id = ANY (${ids}::uuid[])`
  )

export const report = Effect.fnUntraced(function* (
  { environment, organizationId }: Shop,
  at: number,
  type: string,
  data: object,
  id = `svc_evt_${randomBytes(32).toString("hex")}`
) {
  const { sql } = yield* Bench
  const key = eventKey(id, new Date(at))
  yield* sql`SELECT payments.add_day(payments.day_of(${key}::uuid))`
  yield* sql`
    INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
    VALUES (${organizationId}, ${environment}, ${key}, ${id}, ${type},
      ${JSON.stringify({ id, type, version: 1, source: { provider: "stripe", event_id: "evt_1" }, data })})`
})

export const paid = (amount: number, currency = "brl") => ({ payment_id: "pi_1", amount_received: amount, currency })

export const read = (shop: Shop, days = 90) => Effect.flatMap(Bench, ({ processes }) => processes[0].read(shop, days))

export const sums = (shop: Shop) =>
  Effect.map(read(shop), ({ deliveries, payments }) => ({
    delivered: deliveries.reduce((sum, day) => sum + day.delivered, 0),
    failed: deliveries.reduce((sum, day) => sum + day.failed, 0),
    queued: deliveries.reduce((sum, day) => sum + day.queued, 0),
    succeeded: payments.reduce((sum, day) => sum + day.succeeded.count, 0)
  }))

export const dateOf = (millis: number) => new Date(millis).toISOString().slice(0, 10)

/** How much of a shop is looked at again. */
export const unsettled = ({ organizationId }: Shop) =>
  Effect.flatMap(Bench, ({ sql }) =>
    Effect.map(
      sql<{ count: number }>`
        SELECT count(*)::int AS count FROM payments.unsettled_deliveries WHERE organization_id = ${organizationId}`,
      ([row]) => row?.count
    )
  )
