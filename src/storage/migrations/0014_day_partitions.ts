import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { defineAddDay, shortLockTimeout, storedBefore } from "../DayPartitions.ts"

/**
 * Events and deliveries in partitions by day, so that retention drops a day instead of deleting rows, and new rows are
 * inserted at the end of an index whose hot part stays in memory. The tables so far become the partitions of what was
 * stored before, as they are: no row is copied. `prepareDayPartitions` has checked their rows by now, so this takes
 * locks only for a moment.
 *
 * Days are in UTC and begin with `payments.partitioned_from()`. A row belongs to the day in its id, a UUIDv7. An event's
 * id in the database is therefore no longer the public one, which is a hash, but `eventKey` of `src/publishing/`; what
 * is stored before that day keeps the public id, so that processes of the previous version work until then.
 *
 * No foreign keys: on tables of this size they cost more than the rows that they check, and their row locks on one busy
 * tenant use up the multixact members within a week. The statement that inserts rows checks what they refer to, and
 * nothing deletes that under them; `Retention` reports rows without it.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`
  yield* sql`
    LOCK TABLE payments.events, payments.deliveries, payments.delivery_queue, payments.skipped_events
    IN ACCESS EXCLUSIVE MODE`

  yield* sql`
    DO $$
    DECLARE reference record;
    BEGIN
      FOR reference IN SELECT conrelid::regclass AS holder, conname FROM pg_constraint WHERE contype = 'f' AND conrelid IN (
        'payments.events'::regclass, 'payments.deliveries'::regclass, 'payments.delivery_queue'::regclass,
        'payments.skipped_events'::regclass)
      LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', reference.holder, reference.conname);
      END LOOP;
    END $$`

  // Null if the row's id, or event_id, is the public one
  yield* sql`ALTER TABLE payments.events ADD COLUMN public_id text`
  yield* sql`ALTER TABLE payments.skipped_events ADD COLUMN event_key text`

  // A new database begins today. Otherwise the preparation has chosen the day
  const [prepared] = yield* sql`SELECT 1 FROM pg_proc WHERE oid = to_regproc('payments.partitioned_from')`
  if (prepared === undefined) {
    yield* sql`
      DO $$ BEGIN
        EXECUTE format($f$
          CREATE FUNCTION payments.partitioned_from() RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
          $body$ SELECT timestamptz %L $body$ $f$, (now() AT TIME ZONE 'UTC')::date || ' 00:00:00+00');
      END $$`
  }
  yield* sql`
    CREATE FUNCTION payments.first_id_of(day date) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
      SELECT substr(millis, 1, 8) || '-' || substr(millis, 9) || '-0000-0000-000000000000'
      FROM lpad(to_hex((extract(epoch FROM day) * 1000)::bigint), 12, '0') AS millis
    $$`

  yield* sql`
    CREATE FUNCTION payments.day_of(id uuid) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
      SELECT (to_timestamp(('x' || translate(substr(id::text, 1, 13), '-', ''))::bit(48)::bigint / 1000.0)
        AT TIME ZONE 'UTC')::date
    $$`

  // The old names go to the partitioned tables
  for (const index of ["events_pkey", "deliveries_pkey", "deliveries_of_endpoint", "deliveries_failed"]) {
    yield* sql`ALTER INDEX payments.${sql.literal(index)} RENAME TO ${sql.literal(`${index}_before`)}`
  }
  for (const table of ["events", "deliveries"] as const) {
    const before = sql.literal(storedBefore[table].table)
    const name = sql.literal(table)
    yield* sql`ALTER TABLE payments.${name} RENAME TO ${before}`
    yield* sql`
      CREATE TABLE payments.${name} (LIKE payments.${before} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED
        INCLUDING STORAGE) PARTITION BY RANGE (id)`
    yield* sql`ALTER TABLE payments.${name} DROP CONSTRAINT IF EXISTS ${sql.literal(storedBefore[table].check)}`
    yield* sql`ALTER TABLE payments.${name} ADD PRIMARY KEY (organization_id, environment, id)`
  }
  yield* sql`
    CREATE INDEX deliveries_of_endpoint ON payments.deliveries (organization_id, environment, endpoint_id, id)`
  yield* sql`
    CREATE INDEX deliveries_failed
    ON payments.deliveries (organization_id, environment, endpoint_id, failed_at, id) WHERE failed_at IS NOT NULL`

  // Public ids begin with 'svc_', times with a hexadecimal digit. The former collate after the latter in every language
  yield* sql`
    ALTER TABLE payments.events ATTACH PARTITION payments.${sql.literal(storedBefore.events.table)}
    FOR VALUES FROM ('s') TO ('t')`
  yield* sql`
    DO $$ BEGIN
      EXECUTE format('ALTER TABLE payments.deliveries ATTACH PARTITION payments.%I FOR VALUES FROM (MINVALUE) TO (%L)',
        ${sql.literal(`'${storedBefore.deliveries.table}'`)},
        payments.first_id_of((payments.partitioned_from() AT TIME ZONE 'UTC')::date));
    END $$`
  yield* sql`
    ALTER TABLE payments.${sql.literal(storedBefore.deliveries.table)}
    DROP CONSTRAINT IF EXISTS ${sql.literal(storedBefore.deliveries.check)}`

  // used_at: when something of a past day was last known to be waiting, or was added
  yield* sql`CREATE TABLE payments.days (day date PRIMARY KEY, used_at timestamptz)`

  yield* defineAddDay(50)

  // A team's own events, so that one that is published again is not sent again: no key of a partitioned table can say
  // so across days
  yield* sql`
    CREATE TABLE payments.published_events (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id text NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, id)
    )`
  yield* sql`CREATE INDEX published_events_age ON payments.published_events (created_at)`

  // What a claim records of an attempt whose worker has died. A function, since it is rarely needed, and a part of the
  // claim would begin by opening every day's table
  yield* sql`
    CREATE FUNCTION payments.record_interrupted(of_organization uuid, of_environment text, of_id uuid, number smallint,
      trigger text, started_at timestamptz, ends boolean) RETURNS void LANGUAGE sql SET enable_seqscan = off AS $$
      UPDATE payments.deliveries SET
        attempts[number] = COALESCE(attempts[number],
          ROW(number, trigger, started_at, NULL, NULL, 'interrupted')::payments.delivery_attempt),
        attempt_count = number,
        state = CASE WHEN ends THEN 'failed' ELSE 'queued' END,
        finished_at = CASE WHEN ends THEN now() END,
        last_http_status = NULL, last_error_code = 'interrupted'
      WHERE organization_id = of_organization AND environment = of_environment AND id = of_id
    $$`
})
