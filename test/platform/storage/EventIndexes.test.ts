import { createHash, randomUUID } from "node:crypto"
import type { SqlClient } from "@effect/sql"
import { Duration, Effect, Option } from "effect"
import { makeEventsRepo } from "../../../src/destinations/events/EventsRepo.ts"
import { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { connect, daysAgo, makeTenant, on, tenant } from "./PartitionBed.ts"

/** The first hours of some days, with their tables. */
const days = [0, 1, 2].map((ago) => new Date(`${daysAgo(ago).toISOString().slice(0, 10)}T00:00:00Z`))

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

/** Stores one event for each hour of these days, each of a different payment. Returns their public ids and payments. */
const storeHours = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const stored: Array<{ readonly id: string; readonly payment: string }> = []
  for (const day of days) {
    yield* sql`SELECT payments.add_day(${day.toISOString().slice(0, 10)}::date)`
    for (let hour = 0; hour < 24; hour += 1) {
      const at = new Date(day.getTime() + hour * 3_600_000)
      const id = hour % 2 === 0 ? `svc_evt_${sha256(randomUUID())}` : `svc_test_evt_${randomUUID()}`
      const payment = `pi_${randomUUID()}`
      const key = `${at.getTime().toString(16).padStart(12, "0")}`
      yield* sql`
        INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
        VALUES (${tenant.organizationId}, 'sandbox', ${`${key.slice(0, 8)}-${key.slice(8)}-${randomUUID().slice(14)}`}, ${id},
          'payment.succeeded', ${`{"id":"${id}","data":{"payment_id":"${payment}"}}`}, ${at})`
      stored.push({ id, payment })
    }
  }
  return stored
})

/** The indexes of events by public id and by payment, of all days together. */
const indexes = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ readonly name: string; readonly valid: boolean }>`
      SELECT c.relname AS name, i.indisvalid AS valid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      WHERE i.indrelid = 'payments.events'::regclass AND c.relname ~ '_(public|payment)_id$' ORDER BY 1`,
    (rows) => rows.map(({ name, valid }) => (valid ? name : `${name}, not valid`))
  )

const expectAllFound = (
  sql: SqlClient.SqlClient,
  stored: ReadonlyArray<{ readonly id: string; readonly payment: string }>
) =>
  Effect.gen(function* () {
    const repo = yield* on(sql, makeEventsRepo(Duration.days(30)))
    for (const { id, payment } of stored) {
      expect(Option.map(yield* repo.find(tenant, id), (found) => found.id)).toEqual(Option.some(id))
      expect((yield* repo.list(tenant, { payment_id: payment }, undefined, 3)).map((found) => found.id)).toEqual([id])
    }
  })

describe("an event's public id and payment", () => {
  it.scopedLive("find it in whichever hour of whichever day it was stored, and nobody else's", function* () {
    const sql = yield* connect(yield* createMigratedDatabase)
    yield* makeTenant(sql)
    const stored = yield* storeHours(sql)
    expect(yield* indexes(sql)).toEqual(["events_hour_payment_id", "events_hour_public_id"])
    yield* expectAllFound(sql, stored)
    const repo = yield* on(sql, makeEventsRepo(Duration.days(30)))
    const [one] = stored
    if (one === undefined) return expect.unreachable()
    const stranger = { ...tenant, organizationId: OrganizationId.make(randomUUID()) }
    expect(yield* repo.find(stranger, one.id)).toEqual(Option.none())
    expect(yield* repo.list(stranger, { payment_id: one.payment }, undefined, 3)).toEqual([])
    expect(yield* repo.find({ ...tenant, environment: "production" }, one.id)).toEqual(Option.none())
    // What differs only where the index does not look
    for (const other of [`${one.id.slice(0, -1)}x`, one.id.slice(0, 50), "svc_evt_", ""]) {
      expect(yield* repo.find(tenant, other)).toEqual(Option.none())
    }
    for (const other of [`x${one.payment}`, one.payment.slice(-12), ""]) {
      expect(yield* repo.list(tenant, { payment_id: other }, undefined, 3)).toEqual([])
    }
  })

  it.scopedLive("are found by an index of each day, with statistics and without", function* () {
    const sql = yield* connect(yield* createMigratedDatabase)
    yield* makeTenant(sql)
    const [one] = yield* storeHours(sql)
    if (one === undefined) return expect.unreachable()
    // Tables of a size that is not worth reading for one row
    yield* sql`
        INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
        SELECT organization_id, environment, substr(id, 1, 24) || lpad(to_hex(n), 12, '0'),
          'svc_evt_' || encode(sha256((id || n)::bytea), 'hex'), type, payload, created_at
        FROM payments.events, generate_series(1, 200) AS n`
    const repo = yield* on(sql, makeEventsRepo(Duration.days(30)))
    for (const statistics of ["without", "with"]) {
      if (statistics === "with") yield* sql`ANALYZE payments.events`
      for (const [statement, index] of [
        [repo.byId(tenant, one.id), "date_part_substr_idx"],
        [repo.page(tenant, { payment_id: one.payment }, undefined, 11), "date_part_hashtextextended"]
      ] as const) {
        const lines = yield* sql<{ "QUERY PLAN": string }>`EXPLAIN (COSTS OFF) ${statement}`
        const plan = lines.map((line) => line["QUERY PLAN"]).join("\n")
        // Days to come as well: a plan that is kept is used when they have begun
        if (statistics === "without") expect(plan).not.toContain("Seq Scan on events_2")
        for (const day of days) {
          const table = `events_${day.toISOString().slice(0, 10).replaceAll("-", "")}`
          expect(plan).toMatch(new RegExp(`Index Scan( Backward)? (using|on) ${table}_${index}`))
          expect(plan).not.toMatch(new RegExp(`(Seq Scan on ${table}|${table}_(?!${index}|pkey))`))
        }
      }
      const ofPayment = (more: object, before?: string) =>
        repo.list(tenant, { payment_id: one.payment, ...more }, before, 2)
      const [newest, older] = yield* ofPayment({})
      expect(String(newest?.key) > String(older?.key)).toBe(true)
      expect((yield* ofPayment({}, newest?.key))[0]).toEqual(older)
      expect(yield* ofPayment({ type: "payment.failed" })).toEqual([])
    }
  })
})
