import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** Recoveries of endpoints, warnings of failures, and indexes for removing old deliveries and events. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Only failed deliveries, so that a delivery that succeeds never writes to it
  yield* sql`
    CREATE INDEX deliveries_failed
    ON payments.deliveries (organization_id, environment, endpoint_id, finished_at, id) WHERE state = 'failed'`

  // The other side of the deliveries' foreign key: without it, removing an event would read all of a tenant's
  // deliveries. A hash of 4 bytes, since ids are long: a tree costs three times as much per delivery
  yield* sql`CREATE INDEX deliveries_of_event ON payments.deliveries USING hash (event_id)`

  // Written once per row, at the index's end
  yield* sql`CREATE INDEX events_age ON payments.events (created_at)`
  yield* sql`CREATE INDEX skipped_events_age ON payments.skipped_events (created_at)`

  // total: how many had failed when it was started. reached_at and reached_id: the last delivery that it has reached
  yield* sql`
    CREATE TABLE payments.recoveries (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id uuid NOT NULL,
      endpoint_id uuid NOT NULL,
      since timestamptz NOT NULL,
      state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'finished')),
      total integer NOT NULL CHECK (total >= 0),
      queued integer NOT NULL DEFAULT 0 CHECK (queued >= 0),
      skipped integer NOT NULL DEFAULT 0 CHECK (skipped >= 0),
      reached_at timestamptz NOT NULL,
      reached_id uuid NOT NULL,
      stepped_at timestamptz NOT NULL DEFAULT now(),
      created_at timestamptz NOT NULL DEFAULT now(),
      finished_at timestamptz,
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment, endpoint_id) REFERENCES payments.endpoints,
      CHECK ((state = 'finished') = (finished_at IS NOT NULL)),
      CHECK (state = 'running' OR queued + skipped = total)
    )`
  yield* sql`
    CREATE INDEX recoveries_of_endpoint ON payments.recoveries (organization_id, environment, endpoint_id, id)`
  // One at a time per endpoint
  yield* sql`
    CREATE UNIQUE INDEX recoveries_running ON payments.recoveries (organization_id, environment, endpoint_id)
    WHERE state = 'running'`

  // One row per endpoint that was warned about, or is being warned about
  yield* sql`
    CREATE TABLE payments.failure_warnings (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      endpoint_id uuid NOT NULL,
      quiet_until timestamptz NOT NULL,
      PRIMARY KEY (organization_id, environment, endpoint_id),
      FOREIGN KEY (organization_id, environment, endpoint_id) REFERENCES payments.endpoints
    )`
})
