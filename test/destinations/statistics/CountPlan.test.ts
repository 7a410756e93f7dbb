import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import { makeCountStatements } from "../../../src/destinations/statistics/CountStatements.ts"
import { slotMillis, slotOf } from "../../../src/destinations/statistics/Slots.ts"
import { alongIndex } from "../../../src/platform/storage/BoundedReads.ts"
import { databaseLayer, transaction } from "../../../src/platform/storage/Database.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { connect } from "../../platform/storage/PartitionBed.ts"
import { readBy } from "../../platform/storage/PlanRows.ts"

/** How many tenants there are, each with two workspaces, and how many events each of them has in a day. */
const tenants = 20
const perDay = 2_880

describe("a count", () => {
  it.scopedLive("reads what is stored in its time, and nothing else of a long day", function* () {
    const sql = yield* connect(yield* createMigratedDatabase, "60 seconds", 2)
    const day = Math.floor(Date.now() / 86_400_000) * 86_400_000 - 86_400_000
    yield* sql`SELECT payments.add_day(${new Date(day).toISOString().slice(0, 10)}::date)`
    const tenant = sql`('0199c0de-0000-7000-8000-' || lpad(t::text, 12, '0'))::uuid`
    yield* sql`INSERT INTO payments.organizations (id, name) SELECT ${tenant}, 'o' FROM generate_series(1, ${tenants}::int) AS t`
    yield* sql`
        INSERT INTO payments.workspaces (organization_id, environment)
        SELECT id, environment FROM payments.organizations, unnest(ARRAY['sandbox', 'production']) AS environment`
    // One each half minute
    yield* sql`
        WITH made AS MATERIALIZED (
          SELECT ${tenant} AS tenant, substr(payments.id_at(to_timestamp(${day / 1000}::float8) + n * interval '30 seconds')::text, 1, 13)
            || '-7000-8000-' || lpad(to_hex(t * 10000 + n), 12, '0') AS id
          FROM generate_series(1, ${tenants}::int) AS t, generate_series(0, ${perDay - 1}::int) AS n
        ), event AS (
          INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
          SELECT tenant, 'sandbox', id, 'svc_evt_' || id, 'payment.succeeded',
            '{"data":{"payment_id":"pi_1","amount_received":5,"currency":"brl"}}' FROM made
        )
        INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
          attempts, finished_at)
        SELECT tenant, 'sandbox', id::uuid, tenant, id, ARRAY[tenant], 'delivered', '{}', now() FROM made`
    const { deliveries, payments } = makeCountStatements(sql)
    const slot = slotOf(day + 12 * 3_600_000)
    const range = { slot, from: slot, until: slot + slotMillis }
    // Those of the slot, and the workspaces
    const atMost = tenants * 10 + 2 * tenants + 10
    for (const statistics of ["without statistics", "with statistics"]) {
      if (statistics === "with statistics") yield* sql`ANALYZE`
      for (const [what, statement] of Object.entries({ deliveries, payments })) {
        const read = yield* transaction(sql)(Effect.zipRight(alongIndex(sql), readBy(sql, statement(1, range))))
        expect(read.rows, `${what} ${statistics}: ${read.rows} rows`).toBeLessThanOrEqual(atMost)
        // Not along one that begins with the tenant and would be read for the whole day
        const ofRows = read.indexes.filter(
          (name) => /^(?:events|deliveries)_\d/.test(name) && !/hashtextextended/.test(name)
        )
        expect([what, statistics, ofRows.filter((name) => !name.endsWith("_pkey"))]).toEqual([what, statistics, []])
        expect(ofRows.length).toBeGreaterThan(0)
      }
    }
    expect(yield* payments(2, range)).toEqual([{ counted: tenants * 10 }])
    expect(yield* deliveries(2, range)).toEqual([{ counted: tenants * 10 }])
  })

  it.scopedLive.each([
    { what: "payment", payment: '"pi_1"' },
    { what: "charge that belongs to no payment", payment: "null" }
  ])("reads a $what that is refunded again and again once, and not for each refund", function* ({ payment }) {
    const { url } = yield* createMigratedDatabase
    const sql = Context.get(yield* Layer.build(databaseLayer({ url, poolSize: 2 })), SqlClient.SqlClient)
    const slot = slotOf(Date.now())
    const tenant = sql`'0199c0de-0000-7000-8000-000000000001'::uuid`
    yield* sql`INSERT INTO payments.organizations (id, name) VALUES (${tenant}, 'o')`
    yield* sql`INSERT INTO payments.workspaces (organization_id, environment) VALUES (${tenant}, 'sandbox')`
    /** Refunds of one more cent each, one in a tenth of a second. */
    const refund = (from: number, until: number) => sql`
        INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
        SELECT ${tenant}, 'sandbox', substr(payments.id_at(to_timestamp(${slot / 1000}::float8) + n * interval '100 milliseconds')::text,
            1, 13) || '-7000-8000-' || lpad(to_hex(n), 12, '0'), 'svc_evt_' || n, 'payment.refunded',
          ${`{"data":{"charge_id":"ch_1","payment_id":${payment},"amount_refunded":`} || n || ',"currency":"brl"}}'
        FROM generate_series(${from}::int, ${until}::int) AS n`
    // Those of other charges are not read
    yield* sql`
        INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
        SELECT ${tenant}, 'sandbox', substr(payments.id_at(to_timestamp(${slot / 1000}::float8) - interval '1 second')::text, 1, 13)
            || '-7000-8000-' || lpad(to_hex(n), 12, '0'), 'svc_evt_other_' || n, 'payment.refunded',
          '{"data":{"charge_id":"ch_other_' || n || '","payment_id":null,"amount_refunded":1,"currency":"brl"}}'
        FROM generate_series(1, 5000) AS n`
    const { payments } = makeCountStatements(sql)
    const counted = (from: number, until: number) =>
      Effect.gen(function* () {
        const range = { slot, from: slot + from * 100, until: slot + until * 100 }
        const { rows } = yield* transaction(sql)(Effect.zipRight(alongIndex(sql), readBy(sql, payments(1, range))))
        const [sums] = yield* sql<{ count: number; amount: number }>`
            SELECT sum(count)::int AS count, sum(amount)::int AS amount FROM payments.payment_counts`
        return { rows, ...sums }
      })
    yield* refund(1, 700)
    const first = yield* counted(0, 300)
    expect(first).toMatchObject({ count: 299, amount: 299 })
    const second = yield* counted(300, 701)
    expect(second).toMatchObject({ count: 700, amount: 700 })
    // Those of the range, and those of the payment
    expect(first.rows).toBeLessThan(1100)
    expect(second.rows).toBeLessThan(1200)
    // So many that they are not read to their end: they count, but nothing is known of their amounts
    yield* refund(701, 2900)
    const last = yield* counted(2700, 2901)
    expect(last).toMatchObject({ count: 901, amount: 700 })
    expect(last.rows).toBeLessThan(1300)
  })
})
