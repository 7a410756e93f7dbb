import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect, Schedule } from "effect"
import { isWithoutLock } from "./Database.ts"
import { removePartitions } from "./PartitionRemoval.ts"

/**
 * The partitions of `payments.events` and `payments.deliveries`: one for each day in UTC, and one for what was stored
 * before there were days. See migration 0014.
 */

/** The partitions of what was stored before, and the constraints that show that they hold nothing else. */
export const storedBefore = {
  events: { table: "events_before_days", check: "events_stored_before" },
  deliveries: { table: "deliveries_before_days", check: "deliveries_stored_before" }
} as const

/** How many days ahead there are tables for: as long may housekeeping fail without a notification being refused. */
const daysAhead = 3

/**
 * How long both versions of the service may run side by side, in days: after this the days begin, and a process of the
 * previous version can no longer show what was stored.
 */
const daysToUpgrade = 3

/**
 * How long a change of busy tables waits for their locks: everybody else waits behind it. Less than PostgreSQL's
 * `deadlock_timeout`: statements lock these tables in any order, and of a deadlock the change must be the victim.
 */
export const shortLockTimeout = "500ms"

/** How often, and how long, it is tried again to lock a table that a long transaction keeps. */
export const lockPatience = Schedule.spaced("2 seconds").pipe(Schedule.upTo(Duration.minutes(5)))

const untilLocked = <A, R>(statement: Effect.Effect<A, SqlError.SqlError, R>) =>
  Effect.retry(statement, { while: isWithoutLock, schedule: lockPatience })

/**
 * Before migration 0014, and while the service works: shows that the rows of today's tables belong to the partitions that
 * these become, so that the migration need not read them under its locks. Reads both tables once.
 */
export const prepareDayPartitions: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const [stored] = yield* sql`
      SELECT FROM payments.events UNION ALL SELECT FROM payments.deliveries LIMIT 1`
    if (stored === undefined) return
    // An earlier try may have ended too long ago
    yield* sql`
      DO $$
      DECLARE
        first_day date := (now() AT TIME ZONE 'UTC')::date + ${sql.literal(String(daysToUpgrade))};
        millis text := lpad(to_hex((extract(epoch FROM first_day) * 1000)::bigint), 12, '0');
      BEGIN
        SET LOCAL lock_timeout = '${sql.literal(shortLockTimeout)}';
        EXECUTE format($f$
          CREATE OR REPLACE FUNCTION payments.partitioned_from() RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
          $body$ SELECT timestamptz %L $body$ $f$, first_day || ' 00:00:00+00');
        ALTER TABLE payments.events DROP CONSTRAINT IF EXISTS ${sql.literal(storedBefore.events.check)},
          ADD CONSTRAINT ${sql.literal(storedBefore.events.check)} CHECK (id >= 's' AND id < 't') NOT VALID;
        EXECUTE format('
          ALTER TABLE payments.deliveries DROP CONSTRAINT IF EXISTS ${sql.literal(storedBefore.deliveries.check)},
            ADD CONSTRAINT ${sql.literal(storedBefore.deliveries.check)} CHECK (id < %L::uuid) NOT VALID',
          substr(millis, 1, 8) || '-' || substr(millis, 9) || '-0000-0000-000000000000');
      END $$`.pipe(untilLocked)
    for (const table of ["events", "deliveries"] as const) {
      yield* sql`
        ALTER TABLE payments.${sql.literal(table)} VALIDATE CONSTRAINT ${sql.literal(storedBefore[table].check)}`.pipe(
        untilLocked
      )
    }
  }
)

/** How exactly `used_at` is kept for deliveries that are queued again. */
const usedWithin = "1 hour"

/**
 * The part of a statement that keeps the days of deliveries that are queued again for another retention.
 *
 * @param deliveries names the part of the statement that returns the deliveries' rows
 */
export const useDays = (sql: SqlClient.SqlClient, deliveries: string) =>
  sql.literal(`
    UPDATE payments.days SET used_at = now()
    WHERE day IN (SELECT payments.day_of(id) FROM ${deliveries}) AND day < (now() AT TIME ZONE 'UTC')::date
      AND (used_at IS NULL OR used_at < now() - interval '${usedWithin}')`)

/** Undoes the preparation: its constraint on deliveries would begin to refuse new ones. */
export const abandonDayPartitions: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    untilLocked(sql`
      DO $$
      BEGIN
        SET LOCAL lock_timeout = '${sql.literal(shortLockTimeout)}';
        ALTER TABLE payments.events DROP CONSTRAINT IF EXISTS ${sql.literal(storedBefore.events.check)};
        ALTER TABLE payments.deliveries DROP CONSTRAINT IF EXISTS ${sql.literal(storedBefore.deliveries.check)};
      END $$`).pipe(Effect.asVoid)
)

/**
 * The function `payments.add_day`, for migrations: adds a day's tables unless they exist. Pages of its deliveries are filled
 * to `fillfactor` per cent at first.
 *
 * Attaching a table that exists takes a lock that neither reads nor writes wait for; creating it as a partition does not.
 * A day that is being removed is waited for: see Retention.
 */
export const defineAddDay = (fillfactor: number): Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.asVoid(sql`
    CREATE OR REPLACE FUNCTION payments.add_day(wanted date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      suffix text := to_char(wanted, 'YYYYMMDD');
      bounds text := format('FOR VALUES FROM (%L) TO (%L)', payments.first_id_of(wanted), payments.first_id_of(wanted + 1));
      today date := (now() AT TIME ZONE 'UTC')::date;
    BEGIN
      IF wanted < (payments.partitioned_from() AT TIME ZONE 'UTC')::date THEN RETURN; END IF;
      IF wanted < today THEN PERFORM pg_advisory_xact_lock_shared(5190277303); END IF;
      INSERT INTO payments.days AS d (day, used_at) VALUES (wanted, CASE WHEN wanted < today THEN now() END)
      ON CONFLICT (day) DO UPDATE SET used_at = now() WHERE d.day < today;
      IF to_regclass('payments.deliveries_' || suffix) IS NOT NULL THEN RETURN; END IF;
      PERFORM pg_advisory_xact_lock(5190277304);
      IF to_regclass('payments.deliveries_' || suffix) IS NOT NULL THEN RETURN; END IF;
      EXECUTE format('CREATE TABLE payments.events_%s (LIKE payments.events INCLUDING ALL)', suffix);
      EXECUTE format('CREATE TABLE payments.deliveries_%s (LIKE payments.deliveries INCLUDING ALL) WITH (fillfactor = ${sql.literal(String(fillfactor))})',
        suffix);
      EXECUTE format('ALTER TABLE payments.events ATTACH PARTITION payments.events_%s %s', suffix, bounds);
      EXECUTE format('ALTER TABLE payments.deliveries ATTACH PARTITION payments.deliveries_%s %s', suffix, bounds);
    END $$`)
  )

/**
 * Adds the tables of a past day, if they have been removed, and keeps them for another retention: part of a transaction
 * that adds rows to that day.
 */
export const addDayOf = (sql: SqlClient.SqlClient, time: Date) =>
  sql`SELECT payments.add_day((${time.toISOString()}::timestamptz AT TIME ZONE 'UTC')::date)`

/** Adds the tables for today and the next days, if they are missing. */
export const addDays: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    // Adds none twice, since the look and the addition are one statement's
    Effect.asVoid(sql`
      SELECT payments.add_day(wanted::date)
      FROM generate_series((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + ${daysAhead}::int,
        interval '1 day') AS wanted
      WHERE wanted >= payments.partitioned_from() AT TIME ZONE 'UTC'
        AND NOT EXISTS (SELECT 1 FROM payments.days d WHERE d.day = wanted::date)`)
)

/** The advisory lock of the removal of days; the function `add_day` waits for it before it adds rows to a past one. */
const dayRemovalLock = 5_190_277_303

/**
 * SQL: whether a table of a day is no partition any more, or only until who reads it has ended. `add_day` takes it for one
 * that is there, but nothing can be added to it, and no other can be detached before it is.
 */
const isBeingRemoved = (day: string): string => `EXISTS (
        SELECT 1 FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        WHERE c.relnamespace = 'payments'::regnamespace AND COALESCE(i.inhdetachpending, true)
          AND c.relname IN ('deliveries_' || to_char(${day}, 'YYYYMMDD'), 'events_' || to_char(${day}, 'YYYYMMDD')))`

/**
 * Removes the days of which nothing was used for this long: see `removePartitions`. Returns how many tables were dropped.
 * One that an earlier round has begun to remove goes in any case, also if it has been wanted again since.
 *
 * A day whose events a later day's deliveries refer to stays until the retention of those has ended, too: see `keepDays`. Not
 * until that later day is removed: it may be kept for its own events, as may the one that keeps it, and so on.
 *
 * Nothing of a day may be waiting: see `noteWaitingDays`, which must have run before.
 */
export const removeDays = (
  keepFor: Duration.Duration
): Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient> => {
  const hasEnded = (day: string) => `
    GREATEST((${day}.day + 1)::timestamp AT TIME ZONE 'UTC', ${day}.used_at + interval '${usedWithin}')
      < now() - ${Duration.toMillis(keepFor)} * interval '1 millisecond'`
  return removePartitions({
    lock: dayRemovalLock,
    forget: `
      DELETE FROM payments.days d
      WHERE d.day < (now() AT TIME ZONE 'UTC')::date AND (${isBeingRemoved("d.day")} OR ${hasEnded("d")} AND NOT EXISTS (
        SELECT 1 FROM payments.days later WHERE later.day > d.day AND later.day = d.needed_by AND NOT (${hasEnded("later")})
      ))`,
    isForgotten: `c.relname ~ '^(deliveries|events)_[0-9]{8}$'
      AND NOT EXISTS (SELECT 1 FROM payments.days d WHERE to_char(d.day, 'YYYYMMDD') = right(c.relname, 8))`
  })
}

/**
 * Keeps days from being removed until the transaction ends; false if some are being removed just now. For who is to call
 * `keepDays`, before it reads what it needs of them: a removal must not be waited for with locks in hand.
 */
export const holdDays = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ readonly held: boolean }>`SELECT pg_try_advisory_xact_lock_shared(${dayRemovalLock}::bigint) AS held`,
    ([row]) => row?.held === true
  )

/** Keeps the days of these ids for the retention of the day of another id: its deliveries refer to events of theirs. */
export const keepDays = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>, neededBy: string) =>
  Effect.zipRight(
    sql`SELECT payments.add_day(payments.day_of(${neededBy}::uuid))`,
    sql`
      UPDATE payments.days SET needed_by = payments.day_of(${neededBy}::uuid)
      WHERE day IN (SELECT payments.day_of(id) FROM unnest(${ids}::uuid[]) AS id)
        AND day < payments.day_of(${neededBy}::uuid)
        AND (needed_by IS NULL OR needed_by < payments.day_of(${neededBy}::uuid))`
  )

/** Notes which past days still have deliveries that wait: the day of the oldest one, and those after it. */
export const noteWaitingDays: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    Effect.asVoid(sql`
      UPDATE payments.days SET used_at = now()
      WHERE day < (now() AT TIME ZONE 'UTC')::date AND day >= (
        SELECT min(payments.day_of(oldest.id)) FROM payments.workspaces w CROSS JOIN LATERAL (
          SELECT q.id FROM payments.delivery_queue q
          WHERE q.organization_id = w.organization_id AND q.environment = w.environment
          ORDER BY q.organization_id, q.environment, q.id LIMIT 1
        ) AS oldest
      )`)
)
