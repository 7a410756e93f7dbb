import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** The accounts' reported status, events that paused endpoints missed, and indexes for removing old records. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // The number of a reading, taken before it begins: of two readings of an account, the one that began later counts.
  // One sequence for all, so that a number stays comparable when an account is unlinked and linked again
  yield* sql`CREATE SEQUENCE payments.account_readings`
  yield* sql`
    ALTER TABLE payments.provider_accounts
      -- What was last told of the account: the data of account.updated. Null until it was read once
      ADD COLUMN reported_status jsonb,
      ADD COLUMN reported_status_reading bigint NOT NULL DEFAULT 0,
      -- The created_at of the last account.updated: a later reading's event is never dated before it
      ADD COLUMN reported_status_at timestamptz`

  // Events that matched an endpoint while it was paused: they get no delivery, but can be read
  yield* sql`
    CREATE TABLE payments.skipped_events (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      endpoint_id uuid NOT NULL,
      event_id text NOT NULL,
      type text NOT NULL,
      provider_event_id text NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, endpoint_id, event_id),
      FOREIGN KEY (organization_id, environment, endpoint_id) REFERENCES payments.endpoints,
      FOREIGN KEY (organization_id, environment, event_id) REFERENCES payments.events
    )`
  yield* sql`
    CREATE INDEX skipped_events_of_endpoint
    ON payments.skipped_events (organization_id, environment, endpoint_id, created_at, event_id)`
  yield* sql`CREATE INDEX skipped_events_of_event ON payments.skipped_events (organization_id, environment, event_id)`

  // Both tables grow at the index's end: the newest are listed and the oldest removed without a scan
  yield* sql`CREATE INDEX receipts_age ON payments.receipts (environment, received_at)`
  yield* sql`CREATE INDEX audit_log_age ON payments.audit_log (at)`
})
