import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * Organizations, keys, connected accounts, receipts, events, endpoints and deliveries.
 *
 * Keys of tenant tables start with the organization (and the environment), so that the tables can be distributed by
 * organization. Exceptions are what is looked up before the organization is known: `api_keys` by hash,
 * `provider_accounts` by the provider's account id, `receipts` by the provider's event id.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE payments.people (
      id uuid PRIMARY KEY,
      email text NOT NULL CHECK (email = lower(email)),
      created_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT people_email UNIQUE (email)
    )`

  yield* sql`
    CREATE TABLE payments.organizations (
      id uuid PRIMARY KEY,
      name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
      created_at timestamptz NOT NULL DEFAULT now()
    )`

  yield* sql`
    CREATE TABLE payments.workspaces (
      organization_id uuid NOT NULL REFERENCES payments.organizations,
      environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment)
    )`

  yield* sql`
    CREATE TABLE payments.memberships (
      organization_id uuid NOT NULL REFERENCES payments.organizations,
      person_id uuid NOT NULL REFERENCES payments.people,
      role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer')),
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, person_id)
    )`

  // Looked up by hash alone: the organization is not known before
  yield* sql`
    CREATE TABLE payments.api_keys (
      id uuid PRIMARY KEY,
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
      key_hash bytea NOT NULL CHECK (length(key_hash) = 32),
      key_prefix text NOT NULL,
      last_four text NOT NULL,
      permissions text[] NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz,
      revoked_at timestamptz,
      last_used_at timestamptz,
      CONSTRAINT api_keys_key_hash UNIQUE (key_hash),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces,
      -- A key of the live form is for production and no other form is (contract 2.2)
      CHECK ((key_prefix LIKE '%\\_live\\_%') = (environment = 'production'))
    )`
  yield* sql`CREATE INDEX api_keys_of_organization ON payments.api_keys (organization_id, environment, created_at)`

  yield* sql`
    CREATE TABLE payments.provider_accounts (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      account_id text NOT NULL,
      status text NOT NULL CHECK (status IN ('connected', 'disconnected')),
      had_payments_before boolean NOT NULL,
      -- The provider event that the milestone was made of: set once, for good
      first_payment_event_id text,
      linked_at timestamptz NOT NULL DEFAULT now(),
      disconnected_at timestamptz,
      PRIMARY KEY (organization_id, environment),
      -- One account belongs to one organization: its notifications must have one owner
      CONSTRAINT provider_accounts_account UNIQUE (environment, account_id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces,
      CHECK ((status = 'disconnected') = (disconnected_at IS NOT NULL))
    )`

  // One row per verified notification, ours or not: organization_id is null if no account is linked
  yield* sql`
    CREATE TABLE payments.receipts (
      environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
      provider_event_id text NOT NULL,
      organization_id uuid,
      account_id text,
      type text NOT NULL,
      livemode boolean NOT NULL,
      outcome text NOT NULL CHECK (outcome IN ('delivered', 'no_subscriber', 'ignored', 'unlinked', 'wrong_mode', 'malformed')),
      duplicates integer NOT NULL DEFAULT 0,
      provider_created_at timestamptz NOT NULL,
      received_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (environment, provider_event_id)
    )`
  yield* sql`CREATE INDEX receipts_of_organization ON payments.receipts (organization_id, environment, received_at)`

  // The payload is the exact text that is signed, once for all its deliveries
  yield* sql`
    CREATE TABLE payments.events (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id text NOT NULL,
      type text NOT NULL,
      payload text NOT NULL,
      provider_event_id text,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`

  yield* sql`
    CREATE TABLE payments.endpoints (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id uuid NOT NULL,
      name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
      url text NOT NULL,
      -- Null on endpoints from before subscriptions existed: they count as subscribed to payment.succeeded
      events text[] CHECK (cardinality(events) BETWEEN 1 AND 19),
      filters jsonb NOT NULL DEFAULT '{}',
      active boolean NOT NULL DEFAULT true,
      created_at timestamptz NOT NULL DEFAULT now(),
      updated_at timestamptz NOT NULL DEFAULT now(),
      deleted_at timestamptz,
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`

  // The secret that signs new deliveries has no retired_at; a rotation retires it, and it keeps signing for 24 hours
  yield* sql`
    CREATE TABLE payments.endpoint_secrets (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id uuid NOT NULL,
      endpoint_id uuid NOT NULL,
      master_key_id text NOT NULL,
      ciphertext bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      retired_at timestamptz,
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment, endpoint_id) REFERENCES payments.endpoints
    )`
  yield* sql`
    CREATE UNIQUE INDEX endpoint_secrets_current ON payments.endpoint_secrets (organization_id, environment, endpoint_id)
    WHERE retired_at IS NULL`
  yield* sql`
    CREATE INDEX endpoint_secrets_of_endpoint ON payments.endpoint_secrets (organization_id, environment, endpoint_id, created_at)`

  // A claimed delivery stays 'queued': its lease's token is set and the lease's end is kept in next_attempt_at, so that
  // one index serves due, retried and abandoned rows. The id is derived from event and endpoint, so that the primary
  // key limits an event to one delivery per endpoint without a further index. Every attempt rewrites the row:
  // half-filled pages keep that in place.
  yield* sql`
    CREATE TABLE payments.deliveries (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id uuid NOT NULL,
      endpoint_id uuid NOT NULL,
      event_id text NOT NULL,
      secret_ids uuid[] NOT NULL CHECK (cardinality(secret_ids) BETWEEN 1 AND 2),
      state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'delivered', 'failed')),
      test boolean NOT NULL DEFAULT false,
      attempt_count smallint NOT NULL DEFAULT 0 CHECK (attempt_count BETWEEN 0 AND 12),
      next_trigger text NOT NULL DEFAULT 'automatic' CHECK (next_trigger IN ('automatic', 'manual')),
      next_attempt_at timestamptz DEFAULT now(),
      lease uuid,
      claimed_at timestamptz,
      last_http_status smallint,
      last_error_code text,
      traceparent text,
      created_at timestamptz NOT NULL DEFAULT now(),
      finished_at timestamptz,
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment, endpoint_id) REFERENCES payments.endpoints,
      FOREIGN KEY (organization_id, environment, event_id) REFERENCES payments.events,
      CHECK ((state = 'queued') = (next_attempt_at IS NOT NULL)),
      CHECK ((state = 'queued') = (finished_at IS NULL)),
      CHECK (lease IS NULL OR (state = 'queued' AND claimed_at IS NOT NULL))
    ) WITH (fillfactor = 50)`
  yield* sql`CREATE INDEX deliveries_due ON payments.deliveries (next_attempt_at) WHERE state = 'queued'`
  yield* sql`
    CREATE INDEX deliveries_of_endpoint ON payments.deliveries (organization_id, environment, endpoint_id, id)`
  yield* sql`
    CREATE TABLE payments.delivery_attempts (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      delivery_id uuid NOT NULL,
      number smallint NOT NULL CHECK (number BETWEEN 1 AND 12),
      trigger text NOT NULL CHECK (trigger IN ('automatic', 'manual')),
      started_at timestamptz NOT NULL,
      duration_ms integer,
      http_status smallint,
      error_code text,
      PRIMARY KEY (organization_id, environment, delivery_id, number),
      FOREIGN KEY (organization_id, environment, delivery_id) REFERENCES payments.deliveries ON DELETE CASCADE
    )`

  // What a checkout session or payment link sells, for checkout.* events (contract 6.5)
  yield* sql`
    CREATE TABLE payments.sold_items (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      source_id text NOT NULL,
      price_ids text[] NOT NULL,
      product_ids text[] NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, source_id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`
})
