import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * The queue in a separate table, and the attempts of a delivery in its row.
 *
 * Processes of earlier versions can't work on this schema: their workers claim nothing, and their statements that store
 * deliveries are refused (hence `attempts` has no default), so that none is stored without its row in the queue.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // What an earlier process is storing is included; what it stores after this is refused
  yield* sql`LOCK TABLE payments.deliveries IN ACCESS EXCLUSIVE MODE`

  // Waiting deliveries, with all that an attempt needs except the payload. The table stays small, however long the
  // history grows. A claim changes no indexed column, and the end of a delivery deletes the row: neither writes to an
  // index. Half-filled pages keep the new version of a row next to the old one
  yield* sql`
    CREATE TABLE payments.delivery_queue (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id uuid NOT NULL,
      endpoint_id uuid NOT NULL,
      event_id text NOT NULL,
      secret_ids uuid[] NOT NULL CHECK (cardinality(secret_ids) BETWEEN 1 AND 2),
      attempt_count smallint NOT NULL DEFAULT 0 CHECK (attempt_count BETWEEN 0 AND 12),
      next_trigger text NOT NULL DEFAULT 'automatic' CHECK (next_trigger IN ('automatic', 'manual')),
      next_attempt_at timestamptz NOT NULL DEFAULT now(),
      -- While an attempt is under way: its token, since when, and until when nobody else takes it
      lease uuid,
      claimed_at timestamptz,
      leased_until timestamptz,
      traceparent text,
      created_at timestamptz NOT NULL,
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment, id) REFERENCES payments.deliveries,
      CHECK ((lease IS NULL) = (leased_until IS NULL)),
      CHECK (lease IS NULL OR claimed_at IS NOT NULL)
    ) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2)`
  yield* sql`
    INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids,
      attempt_count, next_trigger, next_attempt_at, lease, claimed_at, leased_until, traceparent, created_at)
    SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids, attempt_count, next_trigger,
      next_attempt_at, lease, claimed_at, CASE WHEN lease IS NOT NULL THEN next_attempt_at END, traceparent, created_at
    FROM payments.deliveries WHERE state = 'queued'`
  yield* sql`CREATE INDEX delivery_queue_due ON payments.delivery_queue (next_attempt_at)`

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
  yield* sql`
    ALTER TABLE payments.deliveries
      ADD COLUMN attempts payments.delivery_attempt[] NOT NULL DEFAULT '{}' CHECK (cardinality(attempts) <= 12)`
  // Nearly every row is written: the indexes are created again afterwards
  yield* sql`DROP INDEX payments.deliveries_of_endpoint`
  yield* sql`DROP INDEX payments.deliveries_of_event`
  yield* sql`DROP INDEX payments.deliveries_failed`
  yield* sql`
    UPDATE payments.deliveries d SET attempts = a.attempts
    FROM (
      SELECT organization_id, environment, delivery_id, array_agg(
        ROW(number, trigger, started_at, duration_ms, http_status, error_code)::payments.delivery_attempt ORDER BY number
      ) AS attempts
      FROM payments.delivery_attempts GROUP BY organization_id, environment, delivery_id
    ) a
    WHERE d.organization_id = a.organization_id AND d.environment = a.environment AND d.id = a.delivery_id`
  yield* sql`DROP TABLE payments.delivery_attempts`
  // Adding a stored column rewrites the table, without what the update left behind
  yield* sql`
    ALTER TABLE payments.deliveries
      ALTER COLUMN attempts DROP DEFAULT,
      -- Of failed deliveries alone, so that a delivery that succeeds never writes to their index
      ADD COLUMN failed_at timestamptz GENERATED ALWAYS AS (CASE WHEN state = 'failed' THEN finished_at END) STORED,
      DROP COLUMN lease,
      DROP COLUMN claimed_at,
      DROP COLUMN next_attempt_at,
      DROP COLUMN next_trigger`
  yield* sql`
    CREATE INDEX deliveries_of_endpoint ON payments.deliveries (organization_id, environment, endpoint_id, id)`
  yield* sql`CREATE INDEX deliveries_of_event ON payments.deliveries USING hash (event_id)`
  yield* sql`
    CREATE INDEX deliveries_failed
    ON payments.deliveries (organization_id, environment, endpoint_id, failed_at, id) WHERE failed_at IS NOT NULL`
})
