import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { isWithoutLock } from "./Database.ts"
import { shortLockTimeout } from "./DayPartitions.ts"

/**
 * Indexes for finding events when their day is not known: by public id and by payment, and refunds without a payment by
 * their charge. None of these values has an order in time, so inserts into an index on the value alone go to random pages.
 * See migration 0024.
 */

/** An index that a migration adds to the table of events, and so to each day's. */
export interface EventIndex {
  /** Its name; that of a day's table is the table's with `suffix`. */
  readonly name: string
  readonly suffix: string
  /** Its method, and what it is by. */
  readonly on: string
}

/**
 * The payment of an event, in SQL: found in the text, which is written in one form and has such a key in `data` alone. Null
 * if it has none. Not by a regular expression, which takes twelve times as long.
 */
export const paymentOf = (payload: string): string =>
  `nullif(split_part(split_part(${payload}, '"payment_id":"', 2), '"', 1), '')`

/** The charge of an event, in the same way. */
export const chargeOf = (payload: string): string =>
  `nullif(split_part(split_part(${payload}, '"charge_id":"', 2), '"', 1), '')`

/** The first indexes by public id and payment, of migrations 0018 and 0020: each insert was a write at a random place. */
export const firstEventsByPublicId: EventIndex = {
  name: "events_public_id",
  suffix: "_public_id",
  on: "USING hash (public_id)"
}

export const firstEventsByPayment: EventIndex = {
  name: "events_payment_id",
  suffix: "_payment_id",
  on: `USING hash ((${paymentOf("payload")}))`
}

/**
 * The hour of the day, from 0 to 23, in which an event was stored. The two indexes use different types for it. If they had
 * the same type, a plan made while a day is still empty could scan the wrong index for all hours, and filter its rows.
 */
const hourOf = (event: string, type: "smallint" | "integer"): string =>
  `date_part('hour', ${event}created_at AT TIME ZONE 'UTC')::${type}`

/** 12 characters of a public id that differ: they lie within its hash, or are the end of a synthetic test's id. */
const publicIdDigits = (publicId: string): string => `substr(${publicId}, 38, 12) COLLATE "C"`

/** A hash, since a team's own events may have payments and charges with ids of any form. */
const hashOf = (id: string): string => `hashtextextended(${id}, 0)`

/** Events by their public id. */
export const eventsByPublicId: EventIndex = {
  name: "events_hour_public_id",
  suffix: "_hour_public_id",
  on: `((${hourOf("", "smallint")}), (${publicIdDigits("public_id")}))`
}

/** Events by their payment. Those without one are not in it. */
export const eventsByPayment: EventIndex = {
  name: "events_hour_payment_id",
  suffix: "_hour_payment_id",
  on: `((${hourOf("", "integer")}), (${hashOf(paymentOf("payload"))})) WHERE ${paymentOf("payload")} IS NOT NULL`
}

const isRefundWithoutPayment = (event: string): string =>
  `${event}type = 'payment.refunded' AND ${paymentOf(`${event}payload`)} IS NULL`

/** Refunds of charges that belong to no payment, by their charge: so few that their places in it don't matter. */
export const refundsByCharge: EventIndex = {
  name: "events_refunds_by_charge",
  suffix: "_refunds_by_charge",
  on: `((${hashOf(chargeOf("payload"))})) WHERE ${isRefundWithoutPayment("")}`
}

const hours = Array.from({ length: 24 }, (_, hour) => hour).join(",")

const anyHour = (event: string, type: "smallint" | "integer"): string =>
  `${hourOf(`${event}.`, type)} = ANY ('{${hours}}'::${type}[])`

/**
 * The condition that an event has this public id, in SQL: each day's table is searched by its index, once for each hour.
 *
 * @param event the name of the event's row
 * @param publicId the column, or another text, with the wanted one
 */
export const hasPublicId = (event: string, publicId: string): string =>
  `(${anyHour(event, "smallint")} AND ${publicIdDigits(`${event}.public_id`)} = ${publicIdDigits(publicId)}
    AND ${event}.public_id = ${publicId})`

/** The condition that an event belongs to this payment: see `hasPublicId`. */
export const hasPayment = (event: string, paymentId: string): string =>
  `(${anyHour(event, "integer")} AND ${hashOf(paymentOf(`${event}.payload`))} = ${hashOf(paymentId)}
    AND ${paymentOf(`${event}.payload`)} = ${paymentId})`

/** The condition that an event is a refund of this charge, which belongs to no payment: see `hasPublicId`. */
export const isRefundOfCharge = (event: string, chargeId: string): string =>
  `(${isRefundWithoutPayment(`${event}.`)} AND ${hashOf(chargeOf(`${event}.payload`))} = ${hashOf(chargeId)}
    AND ${chargeOf(`${event}.payload`)} = ${chargeId})`

/** Runs for each table of events that there is before a migration that adds an index. */
type Statement = Effect.Effect<unknown, SqlError.SqlError>

const forEventTables = (run: (sql: SqlClient.SqlClient, table: string) => Statement) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const tables = yield* sql<{ readonly name: string }>`
      SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'payments.events'::regclass`
    yield* Effect.forEach(tables, ({ name }) => run(sql, name), { discard: true })
  })

/**
 * Indexes the tables of events that exist before the index's migration, and while the service works, since the migration
 * would block all writes for as long as it takes to read them. Reads each of them once.
 */
export const eventIndexPreparation = (...indexes: ReadonlyArray<EventIndex>) => {
  const forEach = (run: (sql: SqlClient.SqlClient, name: string, table: string, on: string) => Statement) =>
    Effect.forEach(
      indexes,
      ({ on, suffix }) => forEventTables((sql, table) => run(sql, `${table}${suffix}`, table, on)),
      {
        discard: true
      }
    )
  /** Undoes the preparation, and what an earlier one has left unfinished. */
  const abandon: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = forEach(
    (sql, name) => sql`DROP INDEX CONCURRENTLY IF EXISTS payments.${sql.literal(name)}`
  )
  const prepare: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.zipRight(
    abandon,
    forEach(
      (sql, name, table, on) => sql`
        CREATE INDEX CONCURRENTLY ${sql.literal(name)} ON payments.${sql.literal(table)} ${sql.literal(on)}`
    )
  )
  return { prepare, abandon }
}

/** Part of the index's migration: attaches what is indexed, without reading it; adds the index to each new day's table. */
export const addEventIndex = ({ name, on, suffix }: EventIndex) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.zipRight(
      sql`CREATE INDEX ${sql.literal(name)} ON ONLY payments.events ${sql.literal(on)}`,
      sql`
        DO $$
        DECLARE day record;
        BEGIN
          FOR day IN SELECT i.inhrelid::regclass AS name, c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'payments.events'::regclass
          LOOP
            EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON %s ${sql.literal(on.replaceAll("'", "''"))}',
              day.relname || '${sql.literal(suffix)}', day.name);
            EXECUTE format('ALTER INDEX payments.${sql.literal(name)} ATTACH PARTITION payments.%I',
              day.relname || '${sql.literal(suffix)}');
          END LOOP;
        END $$`
    )
  )

/** For how long processes of the version before migration 0024 may still be at work, and look by the first indexes. */
const firstIndexesNeededFor = "1 day"

/**
 * Drops the first indexes, which migration 0024 has replaced, as soon as no process can need them any more. Waits for
 * nobody: while a long transaction keeps a table of events, it is tried again with the next housekeeping.
 */
export const dropFirstEventIndexes: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql`
      DO $$
      BEGIN
        IF to_regclass('payments.${sql.literal(firstEventsByPublicId.name)}') IS NULL OR NOT EXISTS (
          SELECT 1 FROM payments.migrations
          WHERE migration_id = 24 AND created_at < now() - interval '${sql.literal(firstIndexesNeededFor)}'
        ) THEN RETURN; END IF;
        SET LOCAL lock_timeout = '${sql.literal(shortLockTimeout)}';
        DROP INDEX payments.${sql.literal(firstEventsByPublicId.name)}, payments.${sql.literal(firstEventsByPayment.name)};
      END $$`.pipe(
      Effect.asVoid,
      Effect.catchIf(isWithoutLock, () => Effect.void)
    )
)
