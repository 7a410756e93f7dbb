import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { eventIndexes } from "../partitions/EventIndexes.ts"

/**
 * Events, deliveries, and the queue of waiting deliveries.
 *
 * Events and deliveries are partitioned by day in UTC, so that retention drops a day instead of deleting rows, and new
 * rows are inserted at the end of an index whose hot part stays in memory. A row belongs to the day in its id, a
 * UUIDv7. An event's id in the database is therefore not the public one, which is a hash, but `eventKey` of
 * `src/destinations/publishing/`.
 *
 * No foreign keys: on tables of this size they cost more than the rows that they check, and their row locks on one busy
 * tenant use up the multixact members within a week. The statement that inserts rows checks the rows they refer to, and
 * nothing deletes those while they are referenced; `Retention` reports rows whose referenced row is missing.
 */
export const events = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

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
  // Between the ids of the previous millisecond and those of this one: no UUIDv7 has its version digit
  yield* sql`
    CREATE FUNCTION payments.id_at(instant timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
      SELECT (substr(millis, 1, 8) || '-' || substr(millis, 9) || '-0000-0000-000000000000')::uuid
      FROM lpad(to_hex((extract(epoch FROM instant) * 1000)::bigint), 12, '0') AS millis
    $$`

  // used_at: when a row of a past day was last known to be waiting, or was added. needed_by: the last later day with
  // deliveries of this day's events; this day is kept as long as that one
  yield* sql`CREATE TABLE payments.days (day date PRIMARY KEY, used_at timestamptz, needed_by date)`

  // The payload is the exact text that is signed, stored once for all its deliveries. filter_subjects: the facts that
  // filters read besides the payload, as far as known when the event was stored (see `storeSubjects`); null if there is
  // nothing
  yield* sql`
    CREATE TABLE payments.events (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      public_id text COLLATE "C" NOT NULL,
      type text NOT NULL,
      payload text NOT NULL,
      filter_subjects text,
      provider_event_id text,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, id)
    ) PARTITION BY RANGE (id)`
  // The order in which sandbox events are streamed. Production events, whose insert is the hot one, are not indexed
  yield* sql`
    CREATE INDEX events_streamed ON payments.events (organization_id, created_at) WHERE environment = 'sandbox'`
  for (const { name, on } of eventIndexes) {
    yield* sql`CREATE INDEX ${sql.literal(name)} ON payments.events ${sql.literal(on)}`
  }

  // The write that changes a delivery's state also records its attempt. Attempt number n is the array's n-th element
  yield* sql`
    CREATE TYPE payments.delivery_attempt AS (
      number smallint,
      trigger text,
      started_at timestamptz,
      duration_ms integer,
      http_status smallint,
      error_code text
    )`
  // The id is derived from event and endpoint, so that the primary key limits an event to one delivery per endpoint
  // without a further index
  yield* sql`
    CREATE TABLE payments.deliveries (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      endpoint_id uuid NOT NULL,
      event_id text COLLATE "C" NOT NULL,
      secret_ids uuid[] NOT NULL CHECK (cardinality(secret_ids) BETWEEN 1 AND 2),
      state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'delivered', 'failed')),
      test boolean NOT NULL DEFAULT false,
      attempt_count smallint NOT NULL DEFAULT 0 CHECK (attempt_count BETWEEN 0 AND 12),
      last_http_status smallint,
      last_error_code text,
      traceparent text,
      created_at timestamptz NOT NULL DEFAULT now(),
      finished_at timestamptz,
      attempts payments.delivery_attempt[] NOT NULL CHECK (cardinality(attempts) <= 12),
      -- Of failed deliveries alone, so that a delivery that succeeds never writes to their index
      failed_at timestamptz GENERATED ALWAYS AS (CASE WHEN state = 'failed' THEN finished_at END) STORED,
      PRIMARY KEY (organization_id, environment, id),
      CHECK ((state = 'queued') = (finished_at IS NULL))
    ) PARTITION BY RANGE (id)`
  yield* sql`
    CREATE INDEX deliveries_of_endpoint ON payments.deliveries (organization_id, environment, endpoint_id, id)`
  yield* sql`
    CREATE INDEX deliveries_failed
    ON payments.deliveries (organization_id, environment, endpoint_id, failed_at, id) WHERE failed_at IS NOT NULL`

  // Creates a day's tables unless they exist. Attaching an existing table takes a lock that blocks neither reads nor
  // writes; creating it as a partition would block both. Waits for a running removal of the day: see Retention. A
  // delivery's row grows by its attempt: with pages filled to 40 % at first, no row has to move to another page
  yield* sql`
    CREATE FUNCTION payments.add_day(wanted date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      suffix text := to_char(wanted, 'YYYYMMDD');
      bounds text := format('FOR VALUES FROM (%L) TO (%L)', payments.first_id_of(wanted), payments.first_id_of(wanted + 1));
      today date := (now() AT TIME ZONE 'UTC')::date;
    BEGIN
      IF wanted < today THEN PERFORM pg_advisory_xact_lock_shared(hashtextextended('"payments"', 5190277303)); END IF;
      INSERT INTO payments.days AS d (day, used_at) VALUES (wanted, CASE WHEN wanted < today THEN now() END)
      ON CONFLICT (day) DO UPDATE SET used_at = now() WHERE d.day < today;
      IF to_regclass('payments.deliveries_' || suffix) IS NOT NULL THEN RETURN; END IF;
      PERFORM pg_advisory_xact_lock(hashtextextended('"payments"', 5190277304));
      IF to_regclass('payments.deliveries_' || suffix) IS NOT NULL THEN RETURN; END IF;
      EXECUTE format('CREATE TABLE payments.events_%s (LIKE payments.events INCLUDING ALL)', suffix);
      EXECUTE format('CREATE TABLE payments.deliveries_%s (LIKE payments.deliveries INCLUDING ALL) WITH (fillfactor = 40)',
        suffix);
      EXECUTE format('ALTER TABLE payments.events ATTACH PARTITION payments.events_%s %s', suffix, bounds);
      EXECUTE format('ALTER TABLE payments.deliveries ATTACH PARTITION payments.deliveries_%s %s', suffix, bounds);
    END $$`

  // Records an attempt whose worker has died, for a claim. A function, since it is rarely needed, and as a part of the
  // claim it would make every claim open every day's table
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

  // Waiting deliveries, with everything an attempt needs except the payload. The table stays small, however long the
  // history grows. A claim changes no indexed column, and the end of a delivery deletes the row: neither writes to an
  // index. Half-filled pages keep the new version of a row next to the old one
  yield* sql`
    CREATE TABLE payments.delivery_queue (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      endpoint_id uuid NOT NULL,
      event_id text COLLATE "C" NOT NULL,
      secret_ids uuid[] NOT NULL CHECK (cardinality(secret_ids) BETWEEN 1 AND 2),
      attempt_count smallint NOT NULL DEFAULT 0 CHECK (attempt_count BETWEEN 0 AND 12),
      next_trigger text NOT NULL DEFAULT 'automatic' CHECK (next_trigger IN ('automatic', 'manual')),
      next_attempt_at timestamptz NOT NULL DEFAULT now(),
      -- While an attempt is under way: its token, since when, and until when nobody else takes it
      lease uuid,
      claimed_at timestamptz,
      leased_until timestamptz,
      -- How many claims were abandoned, because their workers died: it rests for longer after each. And how many attempts
      -- were interrupted thereby: they take none of its automatic attempts
      abandoned smallint NOT NULL DEFAULT 0,
      interrupted smallint NOT NULL DEFAULT 0,
      traceparent text,
      created_at timestamptz NOT NULL,
      PRIMARY KEY (organization_id, environment, id),
      CHECK ((lease IS NULL) = (leased_until IS NULL)),
      CHECK (lease IS NULL OR claimed_at IS NOT NULL)
    ) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2)`
  // Claims whose workers have not confirmed them: none of their attempts has begun. The ids are UUIDv7
  yield* sql`CREATE TABLE payments.unconfirmed_claims (lease uuid PRIMARY KEY)`
  yield* sql`CREATE INDEX delivery_queue_due ON payments.delivery_queue (next_attempt_at)`
  // An endpoint's deliveries in due order: those of slow endpoints are claimed separately, however many others wait,
  // and a deleted endpoint's are found at once
  yield* sql`CREATE INDEX delivery_queue_of_endpoint ON payments.delivery_queue (endpoint_id, next_attempt_at)`

  // Events that matched an endpoint while it was paused: they get no delivery, but can be read. event_key: the event's
  // id in the database
  yield* sql`
    CREATE TABLE payments.skipped_events (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      endpoint_id uuid NOT NULL,
      event_id text COLLATE "C" NOT NULL,
      event_key text NOT NULL,
      type text NOT NULL,
      provider_event_id text NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, endpoint_id, event_id)
    )`
  yield* sql`
    CREATE INDEX skipped_events_of_endpoint
    ON payments.skipped_events (organization_id, environment, endpoint_id, created_at, event_id)`
  yield* sql`CREATE INDEX skipped_events_of_event ON payments.skipped_events (organization_id, environment, event_id)`
  yield* sql`CREATE INDEX skipped_events_age ON payments.skipped_events (created_at)`

  // A team's own events, so that publishing one again does not send it again: no key of a partitioned table can be
  // unique across days
  yield* sql`
    CREATE TABLE payments.published_events (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, id)
    )`
  yield* sql`CREATE INDEX published_events_age ON payments.published_events (created_at)`
})
