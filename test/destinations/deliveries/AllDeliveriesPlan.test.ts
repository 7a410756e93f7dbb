import { SqlClient, type Statement } from "@effect/sql"
import { Duration, Effect } from "effect"
import { makeAllDeliveriesRepo } from "../../../src/destinations/deliveries/AllDeliveriesRepo.ts"
import { EndpointId, firstIdAt, OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { alongIndex } from "../../../src/platform/storage/BoundedReads.ts"
import { transaction } from "../../../src/platform/storage/Database.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { connect } from "../../platform/storage/PartitionBed.ts"
import { readBy } from "../../platform/storage/PlanRows.ts"

const tenant = {
  organizationId: OrganizationId.make("0199c0de-0000-7000-8000-000000000001"),
  environment: "sandbox"
} as const
const stranger = OrganizationId.make("0199c0de-0000-7000-8000-000000000002")
const endpointOf = (n: number) => EndpointId.make(`0199c0de-0000-7000-8000-0000000001${String(n).padStart(2, "0")}`)

const days = 5
const perDay = 3_000

describe("the deliveries to all endpoints", () => {
  it.scopedLive("are found along an index, however many there are", function* () {
    const sql = yield* connect(yield* createMigratedDatabase, "60 seconds", 2)
    const today = Math.floor(Date.now() / 86_400_000) * 86_400_000
    for (let ago = 0; ago < days; ago += 1) {
      const day = new Date(today - ago * 86_400_000)
      yield* sql`SELECT payments.add_day(${day.toISOString().slice(0, 10)}::date)`
      // One of a thousand waits, another one has failed; the sixteenth endpoint gets one of a thousand
      yield* sql`
          WITH event AS (
            INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
            SELECT ${tenant.organizationId}, 'sandbox', substr(${firstIdAt(day.getTime())}::text, 1, 24) || lpad(to_hex(n), 12, '0'),
              'svc_evt_' || md5(n || 'of' || ${ago}::text), 'payment.succeeded', '{}'
            FROM generate_series(1, ${perDay}::int) AS n
          ), delivery AS (
            INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
              attempts, created_at, finished_at)
            SELECT organization, 'sandbox', (substr(${firstIdAt(day.getTime())}::text, 1, 24) || lpad(to_hex(n), 12, '0'))::uuid,
              CASE WHEN n % 1000 = 7 THEN ${endpointOf(16)}::uuid ELSE ${endpointOf(1)}::uuid END,
              substr(${firstIdAt(day.getTime())}::text, 1, 24) || lpad(to_hex(n), 12, '0'),
              ARRAY[gen_random_uuid()], CASE n % 1000 WHEN 1 THEN 'queued' WHEN 2 THEN 'failed' ELSE 'delivered' END, '{}',
              ${day.toISOString()}::timestamptz,
              CASE WHEN n % 1000 <> 1 THEN ${day.toISOString()}::timestamptz END
            FROM generate_series(1, ${perDay}::int) AS n, unnest(ARRAY[${tenant.organizationId}, ${stranger}]::uuid[]) AS organization
            RETURNING *
          )
          INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at)
          SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at
          FROM delivery WHERE state = 'queued'`
    }
    const { conditionsOf, list, pages } = yield* Effect.provideService(
      makeAllDeliveriesRepo(Duration.days(30)),
      SqlClient.SqlClient,
      sql
    )

    const rowsOf = (statement: Statement.Fragment) =>
      transaction(sql)(
        Effect.zipRight(
          alongIndex(sql),
          Effect.map(readBy(sql, statement), ({ rows }) => rows)
        )
      )

    for (const statistics of ["without statistics", "with statistics"]) {
      if (statistics === "with statistics") yield* sql`ANALYZE`
      const plain = conditionsOf(tenant, {}, undefined)
      const ofRare = { endpoint_id: endpointOf(16) }
      const read = {
        newest: yield* rowsOf(pages.walked({}, plain, 11)),
        typed: yield* rowsOf(pages.walked({ type: "payment.succeeded" }, plain, 11)),
        "of one endpoint": yield* rowsOf(pages.walked(ofRare, conditionsOf(tenant, ofRare, undefined), 11)),
        waiting: yield* rowsOf(pages.waiting({ state: "queued" }, plain, 11)),
        failed: yield* rowsOf(pages.failures(plain))
      }
      for (const [what, rows] of Object.entries(read)) {
        expect(rows, `${what} ${statistics}: ${rows} rows`).toBeLessThanOrEqual(50)
      }
      expect((yield* list(tenant, {}, 11)).map(({ id }) => id)).toEqual(
        (yield* sql<{ id: string }>`
            SELECT id FROM payments.deliveries WHERE organization_id = ${tenant.organizationId} ORDER BY id DESC LIMIT 11`).map(
          ({ id }) => id
        )
      )
      for (const query of [
        { state: "failed" },
        { state: "queued" },
        ofRare,
        { ...ofRare, type: "payment.succeeded" }
      ] as const) {
        const found = yield* list(tenant, query, 101)
        expect([query, found.length]).toEqual([query, 3 * days])
        expect(found.map(({ id }) => id)).toEqual(
          found
            .map(({ id }) => id)
            .toSorted()
            .toReversed()
        )
      }
    }
    // So many failures that they are met on a walk
    yield* sql`
        UPDATE payments.deliveries SET state = 'failed'
        WHERE organization_id = ${tenant.organizationId} AND state = 'delivered' AND endpoint_id = ${endpointOf(1)}`
    expect((yield* list(tenant, { state: "failed" }, 101)).map(({ id }) => id)).toEqual(
      (yield* sql<{ id: string }>`
          SELECT id FROM payments.deliveries WHERE organization_id = ${tenant.organizationId} AND state = 'failed'
          ORDER BY id DESC LIMIT 101`).map(({ id }) => id)
    )
  })
})
