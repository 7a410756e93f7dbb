import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect, Schedule } from "effect"
import { lockKey } from "../Schema.ts"
import { removePartitions } from "./PartitionRemoval.ts"

/** The partitions of `payments.events` and `payments.deliveries`: one for each day in UTC. */

/** How many days ahead partitions exist: housekeeping may fail for that long before a notification is refused. */
const daysAhead = 3

/**
 * Lock timeout of a change to busy tables: all other statements queue behind its lock request. It is less than
 * PostgreSQL's `deadlock_timeout`: statements lock these tables in any order, and the change must be the victim of a
 * deadlock.
 */
export const shortLockTimeout = "500ms"

/** How often, and for how long, to retry locking a table that a long transaction holds. */
export const lockRetries = Schedule.spaced("2 seconds").pipe(Schedule.upTo(Duration.minutes(5)))

/** Precision of `used_at` for deliveries that are queued again. */
const usedWithin = "1 hour"

/**
 * The part of a statement that keeps the days of requeued deliveries for another retention period.
 *
 * @param deliveries names the part of the statement that returns the deliveries' rows
 */
export const useDays = (sql: SqlClient.SqlClient, deliveries: string) =>
  sql.literal(`
    UPDATE payments.days SET used_at = now()
    WHERE day IN (SELECT payments.day_of(id) FROM ${deliveries}) AND day < (now() AT TIME ZONE 'UTC')::date
      AND (used_at IS NULL OR used_at < now() - interval '${usedWithin}')`)

/** Keeps the day of a time for another retention period. Part of a transaction that adds rows to that day. */
export const addDayOf = (sql: SqlClient.SqlClient, time: Date) =>
  sql`SELECT payments.add_day((${time.toISOString()}::timestamptz AT TIME ZONE 'UTC')::date)`

/** Creates missing tables for today and the next days, and for yesterday, since clocks differ. */
export const addDays: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    // Check and creation are one statement, so no table is created twice
    Effect.asVoid(sql`
      SELECT payments.add_day(wanted::date)
      FROM generate_series((now() AT TIME ZONE 'UTC')::date - 1, (now() AT TIME ZONE 'UTC')::date + ${daysAhead}::int,
        interval '1 day') AS wanted
      WHERE NOT EXISTS (SELECT 1 FROM payments.days d WHERE d.day = wanted::date)`)
)

/** The advisory lock on removing days; the function `add_day` waits for it before it adds rows to a past one. */
const dayRemovalLock = lockKey(5_190_277_303)

/**
 * SQL: whether a day's table is detached, or will be once its current readers end. `add_day` would treat it as present,
 * but no rows can be added to it, and no other table can be detached before it.
 */
const isBeingRemoved = (day: string): string => `EXISTS (
        SELECT 1 FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        WHERE c.relnamespace = '"payments"'::regnamespace AND COALESCE(i.inhdetachpending, true)
          AND c.relname IN ('deliveries_' || to_char(${day}, 'YYYYMMDD'), 'events_' || to_char(${day}, 'YYYYMMDD')))`

/**
 * Removes the days that were not used for this long: see `removePartitions`. Returns how many tables were dropped. A
 * table whose removal an earlier round began is removed in any case, even if its day has been used again since.
 *
 * A day whose events a later day's deliveries refer to stays until the retention of those deliveries has ended, too:
 * see `keepDays`. It does not wait for that later day's removal, which may itself be delayed by its own events or by
 * yet another day, and so on.
 *
 * No delivery of a removed day may be waiting: `noteWaitingDays` must have run before.
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
 * Keeps days from being removed until the transaction ends; false if a removal is running. Call it before reading what
 * `keepDays` will need: a removal must not be waited for while holding locks.
 */
export const holdDays = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ readonly held: boolean }>`SELECT pg_try_advisory_xact_lock_shared(${sql.literal(dayRemovalLock)}) AS held`,
    ([row]) => row?.held === true
  )

/** Keeps the days of these ids for the retention of the day of another id, whose deliveries refer to their events. */
export const keepDays = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>, neededBy: string) =>
  Effect.zipRight(
    sql`SELECT payments.add_day(payments.day_of(${neededBy}::uuid))`,
    sql`
      UPDATE payments.days SET needed_by = payments.day_of(${neededBy}::uuid)
      WHERE day IN (SELECT payments.day_of(id) FROM unnest(${ids}::uuid[]) AS id)
        AND day < payments.day_of(${neededBy}::uuid)
        AND (needed_by IS NULL OR needed_by < payments.day_of(${neededBy}::uuid))`
  )

/** Marks the past days that still have waiting deliveries: the day of the oldest one, and all later ones. */
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
