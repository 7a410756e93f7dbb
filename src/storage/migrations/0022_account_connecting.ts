import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * Connecting provider accounts by an organization itself: how an account was linked, the account that is created for an
 * organization, and authorizations under way. A process of the previous version links by the operator alone, and leaves
 * the new columns as they are.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE payments.provider_accounts
      -- Null: by the operator
      ADD COLUMN linked_by text CHECK (linked_by IN ('operator', 'onboarding', 'oauth')),
      -- Disconnected here, while the provider has not yet confirmed that the platform's access has ended
      ADD COLUMN ends_at_provider boolean NOT NULL DEFAULT false`

  // At most one account is created for a tenant at a time. The number is part of the idempotency key of its creation, and
  // changes only when that account is given up
  yield* sql`
    CREATE TABLE payments.account_onboardings (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      generation integer NOT NULL DEFAULT 1 CHECK (generation >= 1),
      -- Null until the provider has answered
      account_id text,
      begun_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`

  // One authorization at a time per session: a new one replaces it. Only the hash of its state is kept
  yield* sql`
    CREATE TABLE payments.account_authorizations (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      session_id uuid NOT NULL REFERENCES payments.sessions ON DELETE CASCADE,
      state_hash bytea NOT NULL CHECK (length(state_hash) = 32),
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, session_id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`
  yield* sql`CREATE INDEX account_authorizations_of_session ON payments.account_authorizations (session_id)`
  yield* sql`CREATE INDEX account_authorizations_age ON payments.account_authorizations (created_at)`
})
