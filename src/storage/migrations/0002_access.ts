import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** Sessions, invitations and workspace access of people; rate limits, idempotency keys and the audit log. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // A person has one organization (contract 14.3)
  yield* sql`ALTER TABLE payments.memberships ADD CONSTRAINT memberships_one_per_person UNIQUE (person_id)`

  // Workspaces that developers and viewers may enter; owners and admins enter every one
  yield* sql`
    CREATE TABLE payments.workspace_access (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      person_id uuid NOT NULL,
      PRIMARY KEY (organization_id, environment, person_id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces,
      FOREIGN KEY (organization_id, person_id) REFERENCES payments.memberships ON DELETE CASCADE
    )`

  // One-time tokens of sign-in links, valid for 15 minutes; only hashes are stored
  yield* sql`
    CREATE TABLE payments.login_tokens (
      token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
      email text NOT NULL CHECK (email = lower(email)),
      created_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz NOT NULL,
      used_at timestamptz
    )`
  yield* sql`CREATE INDEX login_tokens_expiry ON payments.login_tokens (expires_at)`

  yield* sql`
    CREATE TABLE payments.invitations (
      organization_id uuid NOT NULL REFERENCES payments.organizations,
      id uuid NOT NULL,
      email text NOT NULL CHECK (email = lower(email)),
      role text NOT NULL CHECK (role IN ('admin', 'developer', 'viewer')),
      environments text[] NOT NULL CHECK (environments <@ ARRAY['sandbox', 'production']),
      token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
      created_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz NOT NULL,
      accepted_at timestamptz,
      revoked_at timestamptz,
      PRIMARY KEY (organization_id, id),
      CONSTRAINT invitations_token UNIQUE (token_hash)
    )`
  yield* sql`
    CREATE UNIQUE INDEX invitations_open ON payments.invitations (organization_id, email)
    WHERE accepted_at IS NULL AND revoked_at IS NULL`

  // Looked up by the token's hash alone. The environment is the selected workspace's
  yield* sql`
    CREATE TABLE payments.sessions (
      id uuid PRIMARY KEY,
      token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
      person_id uuid NOT NULL REFERENCES payments.people,
      environment text NOT NULL DEFAULT 'sandbox' CHECK (environment IN ('sandbox', 'production')),
      created_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz NOT NULL,
      CONSTRAINT sessions_token_hash UNIQUE (token_hash)
    )`
  yield* sql`CREATE INDEX sessions_of_person ON payments.sessions (person_id)`
  yield* sql`CREATE INDEX sessions_expiry ON payments.sessions (expires_at)`

  // Token buckets. Unlogged: a crash of the database empties it, which fills every bucket. Half-filled pages keep the
  // row of a busy bucket in place
  yield* sql`
    CREATE UNLOGGED TABLE payments.rate_limits (
      bucket text PRIMARY KEY,
      tokens double precision NOT NULL,
      allowed boolean NOT NULL,
      refilled_at timestamptz NOT NULL
    ) WITH (fillfactor = 50)`

  // The answer is encrypted: it can hold a signing secret
  yield* sql`
    CREATE TABLE payments.idempotency_keys (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      key text NOT NULL,
      operation text NOT NULL,
      request_hash bytea NOT NULL CHECK (length(request_hash) = 32),
      lease uuid NOT NULL,
      locked_until timestamptz,
      status smallint,
      master_key_id text,
      answer bytea,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, key),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces,
      -- Running until there is an answer
      CHECK ((locked_until IS NULL) = (answer IS NOT NULL)),
      CHECK ((status IS NULL) = (answer IS NULL) AND (master_key_id IS NULL) = (answer IS NULL))
    )`
  yield* sql`CREATE INDEX idempotency_keys_age ON payments.idempotency_keys (created_at)`

  // Environment is null if a change concerns the organization as a whole
  yield* sql`
    CREATE TABLE payments.audit_log (
      organization_id uuid NOT NULL REFERENCES payments.organizations,
      id uuid NOT NULL,
      environment text CHECK (environment IN ('sandbox', 'production')),
      author_kind text NOT NULL CHECK (author_kind IN ('api_key', 'person', 'operator')),
      author_id text NOT NULL,
      action text NOT NULL,
      target_type text NOT NULL,
      target_id text NOT NULL,
      request_id text NOT NULL,
      at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, id)
    )`
})
