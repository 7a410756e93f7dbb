import { performance } from "node:perf_hooks"
import { Console, Duration, Effect, Fiber, Redacted } from "effect"
import type { Client } from "pg"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { removeDays } from "../../../src/platform/storage/partitions/DayPartitions.ts"
import { connectionTo } from "../../harness/Connection.ts"
import { BenchFailed } from "../api/Processes.ts"
import { type Bench, type Figure, percentile } from "../Bench.ts"
import { type Database, payloadBytes, startDatabase, startService } from "../deliveries/Bed.ts"
import { notified } from "../latency/Notified.ts"

/**
 * Whether the service stays as fast as it was: notifications at a steady rate, each delivered to three endpoints, while
 * PostgreSQL vacuums, retention drops days, a transaction holds a snapshot and another reads all tables, as `pg_dump`
 * does. A line per minute. Not in the figures: tables of weeks, which `growth` looks at, and a disk of its own.
 *
 * `SOAK_MINUTES` (10 by default, 6 at least) and `SOAK_RATE` (notifications per second, 500 by default) change it.
 */

const minutes = Math.max(6, Number(process.env["SOAK_MINUTES"] ?? 10))
const rate = Number(process.env["SOAK_RATE"] ?? 500)
const endpoints = 3
const warmUpMillis = 2000

/** What happens besides, by minute. */
const happenings: ReadonlyMap<number, string> = new Map([
  [3, "a day is dropped"],
  [4, "a snapshot is held"],
  [5, "all is read, like a dump"],
  [6, "a day is dropped"]
])

const eventsOfOldDay = 100_000

/** Days whose retention is over, with all that was stored on them. */
const addOldDays = (database: Database, organizationId: string, ...daysAgo: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    for (const ago of daysAgo) {
      yield* database.query("SELECT payments.add_day((now() AT TIME ZONE 'UTC')::date - $1::int)", [ago])
      yield* database.query(
        `WITH new AS MATERIALIZED (
           SELECT uuidv7(make_interval(days => -$2::int)) AS id FROM generate_series(1, $3::int)
         ), event AS (
           INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
           SELECT $1, 'sandbox', id::text, 'svc_evt_' || encode(sha256(id::text::bytea), 'hex'), 'payment.succeeded',
             repeat('x', ${payloadBytes}), now() - make_interval(days => $2::int)
           FROM new
         )
         INSERT INTO payments.deliveries
           (organization_id, environment, id, endpoint_id, event_id, secret_ids, state, finished_at, attempts)
         SELECT $1, 'sandbox', uuidv7(make_interval(days => -$2::int)), $1, new.id::text, ARRAY[$1::uuid], 'delivered',
           now() - make_interval(days => $2::int), '{}'
         FROM new, generate_series(1, ${endpoints})`,
        [organizationId, ago, eventsOfOldDay]
      )
    }
    // Where there are such days, autovacuum has been there long ago
    yield* database.query("VACUUM ANALYZE payments.events, payments.deliveries")
    // Not yet: each is let go in its minute
    yield* database.query("UPDATE payments.days SET used_at = now()")
  })

const dropDay = (database: Database) =>
  Effect.gen(function* () {
    yield* database.query(
      `UPDATE payments.days SET used_at = NULL WHERE day = (
         SELECT min(day) FROM payments.days WHERE used_at IS NOT NULL AND day < (now() AT TIME ZONE 'UTC')::date)`
    )
    const removed = yield* Effect.provide(
      removeDays(Duration.days(30)),
      databaseLayer({ url: Redacted.make(database.url), poolSize: 1 })
    )
    if (removed !== 2) return yield* new BenchFailed({ message: `${removed} tables were dropped, not 2` })
  })

/** A transaction of its own connection, whose snapshot is older than all that follows. */
const inSnapshot = (database: Database, work: (client: Client) => Promise<unknown>) =>
  Effect.flatMap(connectionTo(database.url), (client) =>
    Effect.promise(async () => {
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
      await client.query("SELECT count(*) FROM payments.organizations")
      await work(client)
      await client.query("COMMIT")
    })
  ).pipe(Effect.scoped)

const sleep = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const happening = (database: Database, minute: number): Effect.Effect<void, unknown> => {
  switch (happenings.get(minute)) {
    case "a day is dropped":
      return Effect.delay(dropDay(database), "10 seconds")
    case "a snapshot is held":
      return inSnapshot(database, () => sleep(50_000))
    case "all is read, like a dump":
      return inSnapshot(database, async (client) => {
        for (const name of ["receipts", "events", "deliveries", "delivery_queue"])
          await client.query(`COPY (SELECT * FROM payments.${name}) TO '/dev/null'`)
        await sleep(20_000)
      })
    default:
      return Effect.void
  }
}

interface Look {
  readonly lookMillis: number
  readonly deadRows: number
  readonly tableBytes: number
  readonly indexBytes: number
  readonly walBytes: number
}

const look = Effect.fnUntraced(function* (database: Database) {
  const begun = performance.now()
  yield* database.query(
    "SELECT ctid FROM payments.delivery_queue WHERE next_attempt_at <= now() ORDER BY next_attempt_at LIMIT 512"
  )
  const lookMillis = performance.now() - begun
  const [row = {}] = yield* database.query(`
    SELECT sum(n_dead_tup)::float8 AS dead, sum(pg_table_size(relid))::float8 AS tables,
      sum(pg_indexes_size(relid))::float8 AS indexes,
      pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal
    FROM pg_stat_user_tables WHERE schemaname = 'payments'`)
  return {
    lookMillis,
    deadRows: Number(row["dead"]),
    tableBytes: Number(row["tables"]),
    indexBytes: Number(row["indexes"]),
    walBytes: Number(row["wal"])
  } satisfies Look
})

const megabytes = (bytes: number): number => bytes / 1024 / 1024

export const soakBench: Bench = {
  name: "soak",
  about: `${minutes} minutes of notifications with deliveries, vacuum, retention and long transactions`,
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    yield* startService(database, "all")
    const { load, organizationId } = yield* notified(database, endpoints)
    yield* Console.error("Filling days that are to be dropped…")
    yield* addOldDays(database, organizationId, 40, 41)
    const figures: Array<Figure> = []
    for (let minute = 1; minute <= minutes; minute++) {
      const besides = yield* Effect.fork(happening(database, minute))
      const before = yield* look(database)
      const result = yield* load({ rate, warmUpMillis, millis: 60_000 - warmUpMillis })
      const after = yield* look(database)
      yield* Fiber.join(besides)
      const values = {
        p50_from_sending: [percentile(result.afterSending, 0.5), "ms"],
        p99_from_sending: [percentile(result.afterSending, 0.99), "ms"],
        look_from_start: [after.lookMillis, "ms"],
        dead_rows: [after.deadRows, "rows"],
        tables: [megabytes(after.tableBytes), "MB"],
        indexes: [megabytes(after.indexBytes), "MB"],
        wal: [(after.walBytes - before.walBytes) / result.count, "bytes/event"]
      } as const
      const told = happenings.get(minute)
      yield* Console.error(
        `  minute ${minute}: ${Object.entries(values)
          .map(([name, [value, unit]]) => `${name} ${value.toFixed(1)} ${unit}`)
          .join(", ")}${told === undefined ? "" : ` (${told})`}`
      )
      for (const [metric, [value, unit]] of Object.entries(values))
        figures.push({ bench: "soak", case: `minute ${minute}`, metric, value, unit })
    }
    const p99Of = (minute: number) =>
      figures.find((one) => one.case === `minute ${minute}` && one.metric === "p99_from_sending")?.value ?? Number.NaN
    figures.push({
      bench: "soak",
      case: "last minute",
      metric: "ratio_to_second",
      value: p99Of(minutes) / p99Of(2),
      unit: ""
    })
    return figures
  })
}
