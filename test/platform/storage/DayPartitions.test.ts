import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Fiber, Layer, Logger, Option } from "effect"
import { v7 } from "uuid"
import { makeDeliveriesRepo } from "../../../src/destinations/deliveries/DeliveriesRepo.ts"
import { Retention } from "../../../src/destinations/deliveries/Retention.ts"
import { EventReplays } from "../../../src/destinations/event-replays/EventReplays.ts"
import { makeEventReplaysRepo } from "../../../src/destinations/event-replays/EventReplaysRepo.ts"
import { makeOutboundEventsRepo } from "../../../src/destinations/publishing/OutboundEventsRepo.ts"
import { eventKey } from "../../../src/destinations/publishing/Publication.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import { WakeUp } from "../../../src/engine/queue/WakeUp.ts"
import { DeliveryId, EventReplayId } from "../../../src/platform/kit/Ids.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { claimFrom, finished, idle } from "../../engine/QueueBench.ts"
import { createMigratedDatabase, type TestDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import {
  connect,
  daysAgo,
  endpointId,
  keyedHash,
  makeTenant,
  millisPerDay,
  on,
  readOn,
  secretId,
  tenant,
  waitsForLock
} from "./PartitionBed.ts"

const publishAt = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  receivedAt: Date,
  id = `svc_evt_${randomUUID()}`
) {
  const stored = yield* (yield* on(sql, makeOutboundEventsRepo)).insert(
    tenant,
    {
      event: {
        id,
        type: "payment.succeeded",
        payload: `{"id":"${id}"}`,
        matching: [{ endpointId, secretIds: [secretId] }]
      },
      receivedAt,
      sourceEventId: id,
      traceparent: null
    },
    null
  )
  return { id, ...stored }
})

const tableOf = (sql: SqlClient.SqlClient, publicId: string) =>
  Effect.map(
    sql<{ event: string; delivery: string }>`
      SELECT (SELECT relname FROM pg_class WHERE oid = e.tableoid) AS event,
        (SELECT relname FROM pg_class WHERE oid = d.tableoid) AS delivery
      FROM payments.events e JOIN payments.deliveries d
        ON d.organization_id = e.organization_id AND d.environment = e.environment AND d.event_id = e.id
      WHERE e.public_id = ${publicId}`,
    ([row]) => row
  )

const dayTables = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ name: string }>`
      SELECT c.relname AS name FROM pg_class c
      WHERE c.relnamespace = 'payments'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^(deliveries|events)_[0-9]{8}$'
      ORDER BY 1`,
    (rows) => rows.map(({ name }) => name)
  )

const suffixOf = (millis: number) => new Date(millis).toISOString().slice(0, 10).replaceAll("-", "")

const retentionOn = (sql: SqlClient.SqlClient, keepFor = Duration.days(30)) =>
  Effect.map(
    Layer.build(Retention.layer({ keepFor }).pipe(Layer.provide(Layer.succeed(SqlClient.SqlClient, sql)))),
    Context.get(Retention)
  )

/** A step of the replays of a process that keeps events for so many days. */
const replayStep = ({ url }: TestDatabase, days: number) => {
  const layers = Layer.provide(EventReplays.layer({ keepFor: Duration.days(days) }), [WakeUp.layer, keyedHash])
  return Effect.flatMap(
    Layer.build(Layer.provide(layers, databaseLayer({ url }))),
    (services) => Context.get(services, EventReplays).step
  )
}

/** A database with a tenant; the tables of these days are there and unused. */
const agedDatabase = Effect.fnUntraced(function* (...days: ReadonlyArray<number>) {
  const database = yield* createMigratedDatabase
  const sql = yield* connect(database)
  yield* makeTenant(sql)
  for (const day of days) yield* addDay(sql, day)
  yield* sql`UPDATE payments.days SET used_at = NULL`
  return { database, sql }
})

const addDay = (sql: SqlClient.SqlClient, ago: number) =>
  sql`SELECT payments.add_day((${daysAgo(ago).toISOString()}::timestamptz AT TIME ZONE 'UTC')::date)`

/** Ends what waits, as an attempt would. */
const endAll = (sql: SqlClient.SqlClient) => sql`
  WITH gone AS (DELETE FROM payments.delivery_queue RETURNING id)
  UPDATE payments.deliveries d SET state = 'failed', finished_at = now(), attempt_count = 6 FROM gone WHERE d.id = gone.id`

const isThere = (tables: ReadonlyArray<string>, ago: number) => {
  const suffix = suffixOf(daysAgo(ago).getTime())
  return [`events_${suffix}`, `deliveries_${suffix}`].map((name) => tables.includes(name))
}

describe("a key", () => {
  it("is a UUIDv7 of the time of receipt, the same for the same event, and another for another", () => {
    const time = new Date("2026-03-01T12:00:00.123Z")
    const key = eventKey("svc_evt_0123456789abcdef0123456789abcdef", time)
    expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Number.parseInt(key.replaceAll("-", "").slice(0, 12), 16)).toBe(time.getTime())
    expect(eventKey("svc_evt_0123456789abcdef0123456789abcdef", time)).toBe(key)
    for (const other of ["svc_evt_0123456789abcdef1123456789abcdef", "svc_test_evt_1", "svc_test_evt_2", ""]) {
      expect(eventKey(other, time)).not.toBe(key)
    }
  })
})

describe("events and deliveries", () => {
  it.scopedLive("are in the tables of the day on which the event was received, to the millisecond", function* () {
    const { sql } = yield* agedDatabase(1, 2)
    const today = Math.floor(Date.now() / millisPerDay) * millisPerDay
    for (const [millis, suffix] of [
      [today - 1, suffixOf(today - 1)],
      [today, suffixOf(today)],
      [today - millisPerDay, suffixOf(today - millisPerDay)],
      [today - millisPerDay - 1, suffixOf(today - 2 * millisPerDay)],
      [Date.now(), suffixOf(today)]
    ] as const) {
      const { id } = yield* publishAt(sql, new Date(millis))
      expect(yield* tableOf(sql, id)).toEqual({
        event: `events_${suffix}`,
        delivery: `deliveries_${suffix}`
      })
    }
  })

  it.scopedLive("are stored once, on whichever day an event is published again", function* () {
    const { sql } = yield* agedDatabase(1, 70)
    const { id } = yield* publishAt(sql, daysAgo(1))
    for (const again of [id, (yield* publishAt(sql, daysAgo(70))).id]) {
      expect(yield* publishAt(sql, new Date(), again)).toMatchObject({ isNew: false, deliveries: 0 })
    }
    const { id: contested } = yield* Effect.map(
      Effect.all(
        Array.from({ length: 8 }, () => publishAt(sql, new Date(), "svc_evt_contested")),
        { concurrency: 4 }
      ),
      (stored) => {
        expect(stored.filter(({ isNew }) => isNew)).toHaveLength(1)
        return { id: "svc_evt_contested" }
      }
    )
    expect(yield* sql`SELECT 1 FROM payments.events WHERE public_id = ${contested}`).toHaveLength(1)
    expect(yield* sql`SELECT 1 FROM payments.delivery_queue`).toHaveLength(3)
  })

  it.scopedLive("have tables three days ahead, added without waiting for who reads or writes", function* () {
    const { database, sql } = yield* agedDatabase()
    yield* sql`DELETE FROM payments.days`
    for (const name of yield* dayTables(sql)) yield* sql`DROP TABLE payments.${sql.literal(name)}`
    yield* addDay(sql, 70)
    yield* publishAt(sql, daysAgo(70))
    const other = yield* connect(database, "2 seconds")
    // A transaction that has read and written both tables, and goes on
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`UPDATE payments.deliveries SET traceparent = NULL`
        yield* sql`UPDATE payments.events SET provider_event_id = NULL`
        const { clean } = yield* retentionOn(other)
        yield* clean
        const tables = yield* dayTables(other)
        expect([70, 1, 0, -1, -2, -3].flatMap((ago) => isThere(tables, ago))).toEqual(Array(12).fill(true))
        expect(tables).toHaveLength(12)
      })
    )
  })
})

describe("retention", () => {
  it.scopedLive("drops a day that ended 30 days ago, and keeps those with anything later or waiting", function* () {
    const { sql } = yield* agedDatabase(29, 31, 32, 33, 34, 35)
    const { clean } = yield* retentionOn(sql)
    for (const ago of [29, 31, 32, 33, 34]) yield* publishAt(sql, daysAgo(ago))
    yield* endAll(sql)
    const [waiting] = yield* sql<{ id: DeliveryId }>`
        SELECT id FROM payments.deliveries WHERE payments.day_of(id) = ${suffixOf(daysAgo(31).getTime())}::date`
    yield* sql`
        WITH back AS (UPDATE payments.deliveries SET state = 'queued', finished_at = NULL WHERE id = ${waiting?.id ?? ""}
          RETURNING *)
        INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at)
        SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at FROM back`
    yield* sql`
        UPDATE payments.days SET used_at = now() - interval '29 days' WHERE day = ${suffixOf(daysAgo(33).getTime())}::date`
    yield* clean
    const tables = yield* dayTables(sql)
    expect([29, 31, 32, 33, 34, 35].map((ago) => [ago, ...isThere(tables, ago)])).toEqual([
      [29, true, true],
      // One waits
      [31, true, true],
      [32, false, false],
      // One ended 29 days ago
      [33, true, true],
      [34, false, false],
      // Nothing was ever stored
      [35, false, false]
    ])
    // The wait counts from its end
    yield* endAll(sql)
    yield* clean
    expect(isThere(yield* dayTables(sql), 31)).toEqual([true, true])
    yield* sql`UPDATE payments.days SET used_at = used_at - interval '31 days'`
    yield* clean
    const left = yield* dayTables(sql)
    expect([29, 31, 33].map((ago) => isThere(left, ago)[0])).toEqual([true, false, false])
  })

  it.scopedLive("counts from a re-send", function* () {
    const { sql } = yield* agedDatabase(2)
    const { clean } = yield* retentionOn(sql)
    yield* publishAt(sql, daysAgo(2))
    yield* endAll(sql)
    const [row] = yield* sql<{ id: DeliveryId }>`SELECT id FROM payments.deliveries`
    const used = sql`
        SELECT 1 FROM payments.days WHERE used_at IS NOT NULL AND day = ${suffixOf(daysAgo(2).getTime())}::date`
    yield* clean
    expect(yield* used).toEqual([])
    const repo = yield* on(sql, makeDeliveriesRepo(Duration.days(30)))
    expect(
      Option.map(yield* repo.resend(tenant, row?.id ?? DeliveryId.make(v7())), ({ requeued }) => requeued)
    ).toEqual(Option.some(true))
    expect(yield* used).toHaveLength(1)
  })

  it.scopedLive("keeps an event for as long as a delivery that a replay made of it, and so its payload", function* () {
    const { database, sql } = yield* agedDatabase(29, 28)
    const { clean } = yield* retentionOn(sql, Duration.days(10))
    const { id } = yield* publishAt(sql, daysAgo(29))
    yield* endAll(sql)
    const repo = yield* on(sql, makeEventReplaysRepo)
    const replayId = EventReplayId.make(v7())
    yield* repo.insert(tenant, endpointId, { id: replayId, since: daysAgo(29.5), until: daysAgo(28.5), types: null })
    expect(yield* replayStep(database, 30)).toEqual(Option.some(1))
    // By age alone, both past days would go
    yield* sql`UPDATE payments.days SET used_at = NULL`
    yield* clean
    expect(isThere(yield* dayTables(sql), 28)).toEqual([false, false])
    expect(isThere(yield* dayTables(sql), 29)).toEqual([true, true])
    const [delivery] = yield* claimFrom(Context.get(yield* on(sql, Layer.build(Queue.layer)), Queue), idle)
    expect([delivery?.eventId, delivery?.payload]).toEqual([id, `{"id":"${id}"}`])
    yield* endAll(sql)
    // Once the replay's own day is gone, so is the event's, a round later
    yield* sql`UPDATE payments.days SET needed_by = day + 1 WHERE needed_by IS NOT NULL`
    yield* clean
    expect(isThere(yield* dayTables(sql), 29)).toEqual([false, false])
  })

  it.scopedLive("has nothing replayed of a day whose removal waits for who reads", function* () {
    const { database, sql } = yield* agedDatabase(39, 40)
    const { clean } = yield* retentionOn(yield* connect(database, "1 second"), Duration.days(35))
    for (const ago of [20, 39, 40]) {
      yield* addDay(sql, ago)
      yield* publishAt(sql, daysAgo(ago))
    }
    yield* endAll(sql)
    yield* sql`UPDATE payments.days SET used_at = NULL`
    const { end } = yield* readOn(sql, "payments.deliveries, payments.events")
    yield* clean
    const repo = yield* on(sql, makeEventReplaysRepo)
    const range = { since: daysAgo(45), until: daysAgo(10) }
    yield* repo.insert(tenant, endpointId, { id: EventReplayId.make(v7()), ...range, types: null })
    expect(yield* replayStep(database, 60)).toEqual(Option.some(1))
    yield* end
    yield* clean
    yield* clean
    const tables = yield* dayTables(sql)
    expect([39, 40].flatMap((ago) => isThere(tables, ago))).toEqual([false, false, false, false])
    expect(
      yield* sql`
          SELECT e.id IS NOT NULL AS "hasEvent" FROM payments.delivery_queue q LEFT JOIN payments.events e
            ON e.organization_id = q.organization_id AND e.environment = q.environment AND e.id = q.event_id`
    ).toEqual([{ hasEvent: true }])
  })

  it.scopedLive("keeps no day for what is replayed day after day", function* () {
    const { sql } = yield* agedDatabase(...Array.from({ length: 45 }, (_, ago) => ago))
    const { clean } = yield* retentionOn(sql)
    // Each night, somebody replays the day before
    yield* sql`UPDATE payments.days SET needed_by = day + 1 WHERE day < (now() AT TIME ZONE 'UTC')::date`
    yield* clean
    const tables = yield* dayTables(sql)
    for (const ago of [44, 33]) expect([ago, isThere(tables, ago)]).toEqual([ago, [false, false]])
    // Its retention has ended, that of what was replayed of it has not
    for (const ago of [31, 29, 0]) expect([ago, isThere(tables, ago)]).toEqual([ago, [true, true]])
  })

  it.scopedLive("replays nothing that is older than deliveries are kept, so that it can be removed", function* () {
    const { database, sql } = yield* agedDatabase(29, 9)
    yield* publishAt(sql, daysAgo(29))
    const { id } = yield* publishAt(sql, daysAgo(9))
    yield* endAll(sql)
    yield* (yield* on(sql, makeEventReplaysRepo)).insert(tenant, endpointId, {
      id: EventReplayId.make(v7()),
      since: daysAgo(30),
      until: daysAgo(1),
      types: null
    })
    expect(yield* replayStep(database, 10)).toEqual(Option.some(1))
    const [delivery] = yield* claimFrom(Context.get(yield* on(sql, Layer.build(Queue.layer)), Queue), idle)
    expect(delivery?.eventId).toBe(id)
  })

  it.scopedLive("removes an ended replay once its deliveries' day is gone, and one that runs never", function* () {
    const { sql } = yield* agedDatabase()
    const { clean } = yield* retentionOn(sql)
    const repo = yield* on(sql, makeEventReplaysRepo)
    const range = { since: daysAgo(52), until: daysAgo(51), types: null }
    const [gone, kept, running] = [50, 0, 50].map((ago) => EventReplayId.make(v7({ msecs: daysAgo(ago).getTime() })))
    for (const id of [gone, kept]) {
      yield* repo.insert(tenant, endpointId, { id: id ?? EventReplayId.make(v7()), ...range })
      yield* sql`UPDATE payments.event_replays SET state = 'finished', finished_at = ${daysAgo(31)}`
    }
    yield* repo.insert(tenant, endpointId, { id: running ?? EventReplayId.make(v7()), ...range })
    yield* clean
    const left = yield* sql<{ id: string }>`SELECT id FROM payments.event_replays`
    expect(left.map(({ id }) => id).toSorted()).toEqual([kept, running].toSorted())
  })

  it.scopedLive("makes nobody wait, waits for who reads, and goes on in a later round", function* () {
    const { database, sql } = yield* agedDatabase(40, 41)
    const impatient = yield* connect(database, "1 second")
    const { clean } = yield* retentionOn(impatient)
    const queue = Context.get(yield* on(sql, Layer.build(Queue.layer)), Queue)
    // Like a pg_dump: it has seen all tables, and reads on
    const { end } = yield* readOn(sql, "payments.deliveries, payments.events")
    const cleaning = yield* Effect.fork(clean)
    yield* waitsForLock(sql, "the removal waits", "%DETACH PARTITION%")
    // Meanwhile all goes on, within the timeout of a second
    const { id } = yield* publishAt(impatient, new Date())
    const [delivery] = yield* claimFrom(queue, idle)
    expect(delivery?.eventId).toBe(id)
    yield* queue.finish(delivery === undefined ? [] : [finished(delivery, 204, { state: "delivered" })])
    yield* Fiber.join(cleaning)
    expect(isThere(yield* dayTables(sql), 40)).toContain(true)
    yield* end
    yield* clean
    yield* clean
    const tables = yield* dayTables(sql)
    expect([40, 41].flatMap((ago) => isThere(tables, ago))).toEqual([false, false, false, false])
    expect((yield* tableOf(sql, id))?.delivery).toMatch(/deliveries_\d{8}$/)
  })

  it.scopedLive("goes on to remove a day that was wanted again while its removal waited for who reads", function* () {
    const { database, sql } = yield* agedDatabase(40, 41)
    const { clean } = yield* retentionOn(yield* connect(database, "1 second"))
    const { end } = yield* readOn(sql, "payments.deliveries, payments.events")
    yield* clean
    // As by the replay of a receipt, of which nothing is made
    yield* addDay(sql, 41)
    yield* end
    yield* clean
    yield* clean
    const tables = yield* dayTables(sql)
    expect([40, 41].flatMap((ago) => isThere(tables, ago))).toEqual([false, false, false, false])
    yield* addDay(sql, 41)
    yield* publishAt(sql, daysAgo(41))
    expect(isThere(yield* dayTables(sql), 41)).toEqual([true, true])
  })

  it.scopedLive("removes a day once, by however many processes, and a replay has its tables back", function* () {
    const { database, sql } = yield* agedDatabase(40)
    const processes = yield* Effect.all(Array.from({ length: 4 }, () => Effect.flatMap(connect(database), retentionOn)))
    yield* Effect.all(
      processes.map(({ clean }) => clean),
      { concurrency: "unbounded" }
    )
    yield* processes[0]?.clean ?? Effect.void
    expect(isThere(yield* dayTables(sql), 40)).toEqual([false, false])
    yield* addDay(sql, 40)
    const { id } = yield* publishAt(sql, daysAgo(40))
    yield* endAll(sql)
    yield* processes[1]?.clean ?? Effect.void
    expect((yield* tableOf(sql, id))?.event).toBe(`events_${suffixOf(daysAgo(40).getTime())}`)
  })
})

describe("the check of references", () => {
  it.scopedLive("reports what waits without its event, and says nothing of what is whole", function* () {
    const { sql } = yield* agedDatabase(70)
    const { checkReferences } = yield* retentionOn(sql)
    const lines: Array<{ readonly level: string; readonly facts: Record<string, unknown> }> = []
    const logger = Logger.make(({ annotations, logLevel }) => {
      lines.push({ level: logLevel.label, facts: Object.fromEntries(annotations) })
    })
    const check = Effect.provide(checkReferences, Logger.replace(Logger.defaultLogger, logger))
    const { id } = yield* publishAt(sql, new Date())
    yield* publishAt(sql, daysAgo(70))
    yield* check
    expect(lines).toEqual([])
    const [row] = yield* sql<{ id: string }>`
        SELECT d.id FROM payments.deliveries d JOIN payments.events e ON e.id = d.event_id WHERE e.public_id = ${id}`
    yield* sql`DELETE FROM payments.events WHERE public_id = ${id}`
    yield* check
    expect(lines).toEqual([
      {
        level: "ERROR",
        facts: { deliveries: 1, withoutHistory: 0, withoutEvent: 1, withoutEndpoint: 0, ids: [row?.id] }
      }
    ])
  })
})
