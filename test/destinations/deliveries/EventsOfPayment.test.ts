import { SqlClient } from "@effect/sql"
import { Duration, Effect } from "effect"
import { makeEventsRepo } from "../../../src/destinations/events/EventsRepo.ts"
import { firstIdAt, OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { connect } from "../../platform/storage/PartitionBed.ts"

const tenant = {
  organizationId: OrganizationId.make("0199c0de-0000-7000-8000-000000000001"),
  environment: "sandbox"
} as const

const days = 10
const perDay = 2_000

describe("the events of a payment", () => {
  it.scopedLive("are found by the index of each day, however many events there are", function* () {
    const sql = yield* connect(yield* createMigratedDatabase, "15 seconds", 2)
    const today = Math.floor(Date.now() / 86_400_000) * 86_400_000
    for (let ago = 0; ago < days; ago += 1) {
      const day = new Date(today - ago * 86_400_000)
      yield* sql`SELECT payments.add_day(${day.toISOString().slice(0, 10)}::date)`
      // Each payment has two events, and one of three events has none
      yield* sql`
          INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
          SELECT ${tenant.organizationId}, ${tenant.environment}, substr(${firstIdAt(day.getTime())}::text, 1, 24) || lpad(to_hex(n), 12, '0'),
            'svc_evt_' || md5(n || 'of' || ${ago}::text), 'payment.succeeded',
            '{"type":"payment.succeeded","data":{' || CASE n % 3 WHEN 0 THEN '"payment_id":null'
              ELSE '"payment_id":"pi_' || ${ago}::text || '_' || n / 3 || '"' END || '}}'
          FROM generate_series(0, ${perDay - 1}::int) AS n`
    }
    const repo = yield* Effect.provideService(makeEventsRepo(Duration.days(30)), SqlClient.SqlClient, sql)
    for (const statistics of ["without statistics", "with statistics"]) {
      if (statistics === "with statistics") yield* sql`ANALYZE payments.events`
      const [row] = yield* sql<{ "QUERY PLAN": ReadonlyArray<unknown> }>`
          EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${repo.page(tenant, { payment_id: "pi_7_300" }, undefined, 11)}`
      const plan = JSON.stringify(row?.["QUERY PLAN"])
      const indexes = [...plan.matchAll(/"Index Name":"([^"]+)"/g)].map(([, name]) => name)
      expect([
        statistics,
        new Set(indexes).size,
        indexes.filter((name) => !/payment_id|date_part_hashtextextended/.test(name ?? ""))
      ]).toEqual([statistics, indexes.length, []])
      expect(indexes.length).toBeGreaterThanOrEqual(days)
      expect(plan).not.toContain('"Rows Removed by Filter":1')
      const found = yield* repo.list(tenant, { payment_id: "pi_7_300" }, undefined, 11)
      expect(found.map(({ payload }) => JSON.parse(payload).data)).toEqual([
        { payment_id: "pi_7_300" },
        { payment_id: "pi_7_300" }
      ])
      const [newest, older] = found
      expect(String(newest?.key) > String(older?.key)).toBe(true)
      expect(yield* repo.list(tenant, { payment_id: "pi_7_300" }, newest?.key, 11)).toEqual([older])
      expect(yield* repo.list(tenant, { payment_id: "pi_7_300", type: "payment.failed" }, undefined, 11)).toEqual([])
    }
    const stranger = { ...tenant, organizationId: OrganizationId.make("0199c0de-0000-7000-8000-000000000002") }
    expect(yield* repo.list(stranger, { payment_id: "pi_7_300" }, undefined, 11)).toEqual([])
  })
})
