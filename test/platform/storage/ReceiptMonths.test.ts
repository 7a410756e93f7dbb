import { randomUUID } from "node:crypto"
import type { SqlClient } from "@effect/sql"
import { Duration, Effect, Fiber } from "effect"
import { eventId } from "../../../src/events/Envelope.ts"
import { makeInboundRepo } from "../../../src/inbound/InboundRepo.ts"
import type { ListReceipts } from "../../../src/inbound/Receipt.ts"
import type { NewReceipt } from "../../../src/inbound/ReceiptStatement.ts"
import { makeReceiptsRepo } from "../../../src/inbound/ReceiptsRepo.ts"
import { providerOf } from "../../../src/payments/OwnProvider.ts"
import { Provider } from "../../../src/payments/Provider.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { anyReceipt } from "../../inbound/Notifications.ts"
import { connect, daysAgo, endpointId, makeTenant, on, readOn, secretId, tenant, waitsForLock } from "./PartitionBed.ts"

const { organizationId } = tenant
const retention = Duration.days(400)

const recordsRepo = Effect.provideService(makeReceiptsRepo, Provider, providerOf({ name: "stripe" }))

/** The first day of a month, counted from this one. */
const monthAt = (offset: number) => {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, 1))
}

const tableAt = (offset: number) => `receipts_${monthAt(offset).toISOString().slice(0, 7).replace("-", "")}`

/** A notification as the service stores it, with one event for one endpoint. */
const receiptOf = (providerEventId: string, providerCreatedAt: Date, receivedAt = new Date()): NewReceipt => {
  const id = eventId({ provider: "stripe", environment: "sandbox", providerEventId, type: "payment.succeeded" })
  const endpoint = {
    endpointId,
    id: endpointId,
    secretIds: [secretId],
    active: true,
    events: ["payment.succeeded"],
    filters: {}
  } as const
  return {
    ...anyReceipt("acct_1", organizationId),
    providerEventId,
    outcome: "delivered",
    providerCreatedAt,
    receivedAt,
    events: [{ id, type: "payment.succeeded", payload: `{"id":"${id}"}`, matching: [endpoint] }]
  }
}

/** There are tables for so many months before this one, as if the installation had had them for so long. */
const addMonths = (sql: SqlClient.SqlClient, months: number) =>
  Effect.forEach(
    Array.from({ length: months + 1 }, (_, month) => -month),
    (month) => sql`SELECT payments.add_receipt_month(payments.month_at(${month}))`
  )

const monthlyDatabase = Effect.fnUntraced(function* (months: number, poolSize?: number) {
  const database = yield* createMigratedDatabase
  const sql = yield* connect(database, "15 seconds", poolSize)
  yield* makeTenant(sql)
  if (months > 0) yield* addMonths(sql, months)
  const { insert } = yield* on(sql, makeInboundRepo(null))
  return { database, sql, insert }
})

/** Where a notification's receipts are, how many copies they count, and how many deliveries there are of it. */
const storedOf = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(
    sql<{ table: string; duplicates: number; deliveries: number }>`
      SELECT r.table, r.duplicates, (SELECT count(*)::int FROM payments.deliveries d JOIN payments.events e
          ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
          WHERE e.provider_event_id = ${id}) AS deliveries
      FROM (
        SELECT c.relname AS table, provider_event_id, duplicates FROM payments.receipts r JOIN pg_class c ON c.oid = r.tableoid
      ) r WHERE provider_event_id = ${id}`,
    (rows) => rows
  )

const tables = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ name: string }>`
      SELECT relname AS name FROM pg_class
      WHERE relnamespace = 'payments'::regnamespace AND relkind = 'r' AND relname ~ '^receipts_[0-9]{6}$' ORDER BY 1`,
    (rows) => rows.map(({ name }) => name)
  )

const newId = () => `evt_${randomUUID().replaceAll("-", "")}`

describe("a receipt", () => {
  it.scopedLive("is in the table of the month in which the provider created its event", function* () {
    const { insert, sql } = yield* monthlyDatabase(6)
    const thisMonth = monthAt(0).getTime()
    for (const [created, table] of [
      [new Date(), tableAt(0)],
      [new Date(thisMonth), tableAt(0)],
      [new Date(thisMonth - 1000), tableAt(-1)],
      [monthAt(-1), tableAt(-1)],
      // Seven months ago there were none
      [monthAt(-7), "receipts_undated"],
      [new Date(0), "receipts_undated"],
      [new Date("2100-01-01"), "receipts_undated"]
    ] as const) {
      const id = newId()
      expect(yield* insert(receiptOf(id, created))).toMatchObject({ first: true, outcome: "delivered" })
      expect(yield* storedOf(sql, id)).toEqual([{ table, duplicates: 0, deliveries: 1 }])
    }
  })

  it.scopedLive("is one for all copies, at once or one after the other, by however many processes", function* () {
    const { database, insert, sql } = yield* monthlyDatabase(6)
    const other = yield* Effect.flatMap(connect(database), (sql) => on(sql, makeInboundRepo(null)))
    for (const created of [new Date(), daysAgo(1), monthAt(-1), monthAt(-5), new Date(0), daysAgo(-400)]) {
      const id = newId()
      const stored = yield* Effect.all(
        Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? insert : other.insert)(receiptOf(id, created))),
        { concurrency: "unbounded" }
      )
      stored.push(yield* insert(receiptOf(id, created)), yield* other.insert(receiptOf(id, created)))
      expect(stored.filter(({ first }) => first)).toHaveLength(1)
      expect(yield* storedOf(sql, id)).toMatchObject([{ duplicates: 9, deliveries: 1 }])
    }
  })

  it.scopedLive("is one for copies that say different times, whichever comes first", function* () {
    const { insert, sql } = yield* monthlyDatabase(6)
    const times = [
      new Date(),
      new Date(monthAt(0).getTime() - 1000),
      monthAt(-2),
      monthAt(-4),
      monthAt(-9),
      new Date(0),
      daysAgo(-0.5),
      daysAgo(-40),
      new Date("2100-01-01")
    ]
    for (const [one, two] of times.flatMap((one) => times.map((two) => [one, two] as const))) {
      const id = newId()
      expect((yield* insert(receiptOf(id, one))).first).toBe(true)
      expect([one, two, yield* insert(receiptOf(id, two))]).toMatchObject([one, two, { first: false }])
      expect([one, two, yield* storedOf(sql, id)]).toMatchObject([one, two, [{ duplicates: 1, deliveries: 1 }]])
    }
  })

  it.scopedLive("is stored in a batch with any others, each in its place", function* () {
    const { insert, sql } = yield* monthlyDatabase(6)
    const times = [new Date(), monthAt(-1), monthAt(-4), new Date(0), new Date("2100-01-01")]
    const receipts = Array.from({ length: 40 }, (_, index) => receiptOf(newId(), times[index % 5] ?? new Date()))
    const stored = yield* Effect.withTracerEnabled(
      Effect.all(receipts.map(insert), { concurrency: "unbounded" }),
      false
    )
    expect(stored.map(({ first }) => first)).toEqual(Array(40).fill(true))
    const counts = yield* sql<{ table: string; count: number }>`
        SELECT c.relname AS table, count(*)::int AS count
        FROM payments.receipts r JOIN pg_class c ON c.oid = r.tableoid GROUP BY 1 ORDER BY 1`
    expect(counts).toEqual([
      { table: tableAt(-1), count: 8 },
      { table: tableAt(0), count: 8 },
      { table: "receipts_undated", count: 24 }
    ])
  })

  it.scopedLive("is stored even if nobody has added its month, and found again when somebody has", function* () {
    const { database, insert, sql } = yield* monthlyDatabase(0)
    yield* sql`DELETE FROM payments.receipt_months`
    for (const name of yield* tables(sql)) yield* sql`DROP TABLE payments.${sql.literal(name)}`
    const id = newId()
    expect((yield* insert(receiptOf(id, new Date()))).first).toBe(true)
    expect(yield* storedOf(sql, id)).toMatchObject([{ table: "receipts_undated" }])
    yield* (yield* on(sql, recordsRepo)).clean(retention)
    expect(yield* tables(sql)).toEqual([tableAt(0), tableAt(1), tableAt(2)])
    for (const process of [sql, yield* connect(database)]) {
      const { insert } = yield* on(process, makeInboundRepo(null))
      expect((yield* insert(receiptOf(id, new Date()))).first).toBe(false)
    }
    expect(yield* storedOf(sql, id)).toMatchObject([{ table: "receipts_undated", duplicates: 2, deliveries: 1 }])
  })
})

describe("retention", () => {
  it.scopedLive("drops a month once its last receipt is old enough, and what is in no month row by row", function* () {
    const { sql } = yield* monthlyDatabase(18)
    const records = yield* on(sql, recordsRepo)
    const put = (offset: number, ...receivedDaysAgo: ReadonlyArray<number>) =>
      Effect.forEach(
        receivedDaysAgo,
        (days) => sql`
            INSERT INTO payments.receipts
              (environment, provider_event_id, type, livemode, outcome, provider_created_at, received_at, month)
            SELECT environment, ${newId()}, 'x', false, 'ignored', ${monthAt(offset)}, ${daysAgo(days)},
              payments.month_at(${offset})
            FROM unnest(ARRAY['sandbox', 'production']) AS environment`
      )
    yield* put(-15, 440, 420)
    yield* put(-16, 470, 399)
    yield* put(-1, 20)
    yield* sql`
        INSERT INTO payments.receipts
          (environment, provider_event_id, type, livemode, outcome, provider_created_at, received_at, month)
        SELECT 'sandbox', 'evt_odd' || age, 'x', false, 'ignored', to_timestamp(0), now() - age * interval '1 day', 'infinity'
        FROM unnest(ARRAY[401, 399]) AS age`
    yield* records.clean(retention)
    const left = yield* tables(sql)
    expect([-18, -17, -16, -15, -13, -1, 0].map((offset) => left.includes(tableAt(offset)))).toEqual([
      // Nothing was ever in it
      false,
      false,
      // One came late
      true,
      false,
      // It ended less than 400 days ago
      true,
      true,
      true
    ])
    const undated = yield* sql`SELECT provider_event_id AS id FROM payments.receipts_undated`
    expect(undated).toEqual([{ id: "evt_odd399" }])
  })

  it.scopedLive("keeps the last months, however short it is, since new receipts are for them", function* () {
    const { insert, sql } = yield* monthlyDatabase(6)
    yield* (yield* on(sql, recordsRepo)).clean(Duration.millis(1))
    expect(yield* tables(sql)).toEqual([-2, -1, 0, 1, 2].map(tableAt))
    for (const created of [new Date(), monthAt(-1), monthAt(-4)]) {
      expect((yield* insert(receiptOf(newId(), created))).first).toBe(true)
    }
  })

  it.scopedLive("makes nobody wait, waits for who reads, and goes on in a later round", function* () {
    const { database, sql } = yield* monthlyDatabase(18)
    const impatient = yield* connect(database, "1 second")
    const records = yield* on(impatient, recordsRepo)
    const { insert } = yield* on(impatient, makeInboundRepo(null))
    const { end } = yield* readOn(sql, "payments.receipts")
    const cleaning = yield* Effect.fork(records.clean(retention))
    yield* waitsForLock(sql, "the removal waits", "%DETACH PARTITION%")
    // Meanwhile all goes on, within the timeout of a second
    for (const created of [new Date(), monthAt(-1), new Date(0)]) {
      const id = newId()
      expect((yield* insert(receiptOf(id, created))).first).toBe(true)
      expect((yield* insert(receiptOf(id, created))).first).toBe(false)
      expect(yield* records.find({ environment: "sandbox", providerEventId: id })).toMatchObject({ duplicates: 1 })
    }
    yield* Fiber.join(cleaning)
    expect(yield* tables(sql)).toContain(tableAt(-18))
    yield* end
    yield* records.clean(retention)
    yield* records.clean(retention)
    expect(yield* tables(sql)).not.toContain(tableAt(-18))
    expect(yield* tables(sql)).toContain(tableAt(0))
  })
})

describe("a list of receipts", () => {
  const perMonth = 2000
  const months = 12

  it.scopedLive("reads a bounded number of rows, whatever the filter, and its pages have all there is", function* () {
    // One connection, whose statistics count
    const { sql } = yield* monthlyDatabase(months, 1)
    yield* sql`
        INSERT INTO payments.receipts (environment, provider_event_id, organization_id, account_id, type, livemode,
          outcome, provider_created_at, received_at, month)
        SELECT 'sandbox', 'evt_' || m || '_' || n, CASE WHEN n % 2 = 0 THEN ${organizationId}::uuid END, 'acct_1',
          CASE WHEN m % 6 = 5 AND n = 7 THEN 'rare.type' ELSE 'payment_intent.succeeded' END, false,
          CASE WHEN m = 11 AND n = 8 THEN 'malformed' ELSE 'delivered' END,
          payments.month_at(-m), payments.month_at(-m) + n * interval '10 minutes', payments.month_at(-m)
        FROM generate_series(0, ${months - 1}::int) AS m, generate_series(1, ${perMonth}::int) AS n`
    yield* sql`ANALYZE payments.receipts`
    const records = yield* on(sql, recordsRepo)
    const reads = Effect.map(
      Effect.zipRight(
        sql`SELECT pg_stat_force_next_flush()`,
        sql<{ reads: number }>`
            SELECT sum(seq_tup_read + COALESCE(idx_tup_fetch, 0))::int AS reads FROM pg_stat_user_tables
            WHERE schemaname = 'payments' AND relname LIKE 'receipts%'`
      ),
      ([row]) => row?.reads ?? 0
    )
    const readBy = <A, E>(effect: Effect.Effect<A, E>) =>
      Effect.gen(function* () {
        const before = yield* reads
        return [yield* effect, (yield* reads) - before] as const
      })
    const filters: ReadonlyArray<Omit<ListReceipts, "environment">> = [
      {},
      { organizationId },
      { since: monthAt(-11) },
      { organizationId, since: monthAt(-11), limit: 100 },
      { before: `evt_9_${perMonth}` },
      { before: `evt_9_${perMonth}`, organizationId },
      { before: "evt_9_5", since: monthAt(-11) }
    ]
    for (const filter of filters) {
      const [page, rows] = yield* readBy(records.list({ environment: "sandbox", ...filter }))
      expect([filter, page.data.length]).toEqual([filter, filter.limit ?? 10])
      expect([filter, rows]).toEqual([filter, expect.toSatisfy((count: number) => count > 0 && count < 1000)])
    }
    const allOf = Effect.fnUntraced(function* (filter: Omit<ListReceipts, "environment">) {
      const found: Array<string> = []
      let pages = 0
      let before: string | null = null
      do {
        const query: ListReceipts = { environment: "sandbox", ...filter, ...(before === null ? {} : { before }) }
        const [page, rows] = yield* readBy(records.list(query))
        expect(rows).toBeLessThan(11_000)
        expect(page.has_more).toBe(page.next !== null)
        found.push(...page.data.map(({ providerEventId }) => providerEventId))
        before = page.next
        pages += 1
      } while (before !== null)
      return { found, pages }
    })
    expect(yield* allOf({ type: "rare.type" })).toEqual({ found: ["evt_5_7", "evt_11_7"], pages: 3 })
    // Operators look for these among all others, without reading those
    const [malformed, read] = yield* readBy(records.list({ environment: "sandbox", outcome: "malformed" }))
    expect(malformed).toMatchObject({ data: [{ providerEventId: "evt_11_8" }], has_more: false, next: null })
    expect(read).toBeLessThan(50)
    expect((yield* allOf({ outcome: "no_subscriber" })).found).toEqual([])
    expect((yield* allOf({ outcome: "malformed", organizationId })).found).toEqual(["evt_11_8"])
    expect((yield* allOf({ outcome: "malformed", type: "rare.type" })).found).toEqual([])
    expect((yield* allOf({ type: "rare.type", since: monthAt(-1) })).pages).toBe(1)
    const [found, rows] = yield* readBy(records.find({ environment: "sandbox", providerEventId: "evt_7_7" }))
    expect(found?.providerEventId).toBe("evt_7_7")
    expect(rows).toBeLessThan(5)
  })
})
