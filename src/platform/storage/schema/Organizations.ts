import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

export const organizations = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE payments.people (
      id uuid PRIMARY KEY,
      email text COLLATE "C" NOT NULL CHECK (email = lower(email)),
      created_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT people_email UNIQUE (email)
    )`

  yield* sql`
    CREATE TABLE payments.organizations (
      id uuid PRIMARY KEY,
      name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
      created_at timestamptz NOT NULL DEFAULT now()
    )`

  // success_url and cancel_url: where payers return after checkout; null for the operator's
  yield* sql`
    CREATE TABLE payments.workspaces (
      organization_id uuid NOT NULL REFERENCES payments.organizations,
      environment text COLLATE "C" NOT NULL CHECK (environment IN ('sandbox', 'production')),
      created_at timestamptz NOT NULL DEFAULT now(),
      success_url text CHECK (length(success_url) <= 2048),
      cancel_url text CHECK (length(cancel_url) <= 2048),
      return_urls_updated_at timestamptz,
      PRIMARY KEY (organization_id, environment)
    )`

  yield* sql`
    CREATE TABLE payments.memberships (
      organization_id uuid NOT NULL REFERENCES payments.organizations,
      person_id uuid NOT NULL REFERENCES payments.people,
      role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer')),
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, person_id),
      -- A person has one organization (contract 14.3)
      CONSTRAINT memberships_one_per_person UNIQUE (person_id)
    )`

  // Workspaces that developers and viewers may enter; owners and admins enter every one
  yield* sql`
    CREATE TABLE payments.workspace_access (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      person_id uuid NOT NULL,
      PRIMARY KEY (organization_id, environment, person_id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces,
      FOREIGN KEY (organization_id, person_id) REFERENCES payments.memberships ON DELETE CASCADE
    )`

  // One-time tokens of sign-in links, valid for 15 minutes; only hashes are stored
  yield* sql`
    CREATE TABLE payments.login_tokens (
      token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
      email text COLLATE "C" NOT NULL CHECK (email = lower(email)),
      created_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz NOT NULL,
      used_at timestamptz
    )`
  yield* sql`CREATE INDEX login_tokens_expiry ON payments.login_tokens (expires_at)`
  // Used at sign-in to find the person's other open links
  yield* sql`CREATE INDEX login_tokens_open ON payments.login_tokens (email) WHERE used_at IS NULL`

  // An invitation is void once its creator may no longer grant it
  yield* sql`
    CREATE TABLE payments.invitations (
      organization_id uuid NOT NULL REFERENCES payments.organizations,
      id uuid NOT NULL,
      email text COLLATE "C" NOT NULL CHECK (email = lower(email)),
      role text NOT NULL CHECK (role IN ('admin', 'developer', 'viewer')),
      environments text[] NOT NULL CHECK (environments <@ ARRAY['sandbox', 'production']),
      token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
      created_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz NOT NULL,
      accepted_at timestamptz,
      revoked_at timestamptz,
      created_by_kind text CHECK (created_by_kind IN ('api_key', 'person', 'operator', 'provider')),
      created_by_id text COLLATE "C",
      PRIMARY KEY (organization_id, id),
      CONSTRAINT invitations_token UNIQUE (token_hash),
      CHECK ((created_by_kind IS NULL) = (created_by_id IS NULL))
    )`
  yield* sql`
    CREATE UNIQUE INDEX invitations_open ON payments.invitations (organization_id, email)
    WHERE accepted_at IS NULL AND revoked_at IS NULL`
  yield* sql`CREATE INDEX invitations_expiry ON payments.invitations (expires_at)`
  // Open invitations of an organization that one person sent
  yield* sql`
    CREATE INDEX invitations_open_by_creator ON payments.invitations (organization_id, created_by_id)
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
      -- To the minute
      last_used_at timestamptz NOT NULL DEFAULT now(),
      -- Such as 'Firefox on Linux'; null if the client did not say, or is no browser that we know
      client text,
      CONSTRAINT sessions_token_hash UNIQUE (token_hash)
    )`
  yield* sql`CREATE INDEX sessions_of_person ON payments.sessions (person_id)`
  yield* sql`CREATE INDEX sessions_expiry ON payments.sessions (expires_at)`

  // Looked up by hash alone, since the organization is not known before. A key is void once its creator may no longer
  // grant it
  yield* sql`
    CREATE TABLE payments.api_keys (
      id uuid PRIMARY KEY,
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
      key_hash bytea NOT NULL CHECK (length(key_hash) = 32),
      key_prefix text NOT NULL,
      last_four text NOT NULL,
      permissions text[] NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz,
      revoked_at timestamptz,
      last_used_at timestamptz,
      created_by_kind text CHECK (created_by_kind IN ('api_key', 'person', 'operator', 'provider')),
      created_by_id text,
      CONSTRAINT api_keys_key_hash UNIQUE (key_hash),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces,
      -- A key of the live form is for production and no other form is (contract 2.2)
      CHECK ((key_prefix LIKE '%\\_live\\_%') = (environment = 'production')),
      CHECK ((created_by_kind IS NULL) = (created_by_id IS NULL))
    )`
  yield* sql`CREATE INDEX api_keys_of_organization ON payments.api_keys (organization_id, environment, created_at)`
  // For counting the keys within an organization's limit
  yield* sql`CREATE INDEX api_keys_unrevoked ON payments.api_keys (organization_id) WHERE revoked_at IS NULL`

  // environment is null if a change concerns the whole organization
  yield* sql`
    CREATE TABLE payments.audit_log (
      organization_id uuid NOT NULL REFERENCES payments.organizations,
      id uuid NOT NULL,
      environment text COLLATE "C" CHECK (environment IN ('sandbox', 'production')),
      author_kind text NOT NULL CHECK (author_kind IN ('api_key', 'person', 'operator', 'provider')),
      author_id text NOT NULL,
      action text NOT NULL,
      target_type text NOT NULL,
      target_id text NOT NULL,
      request_id text NOT NULL,
      at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, id)
    )`
  yield* sql`CREATE INDEX audit_log_age ON payments.audit_log (at)`
  yield* sql`CREATE INDEX audit_log_of_environment ON payments.audit_log (organization_id, environment, id)`
  yield* sql`
    CREATE INDEX audit_log_of_organization ON payments.audit_log (organization_id, id) WHERE environment IS NULL`
})
