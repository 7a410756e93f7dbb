import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

export const endpoints = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE payments.endpoints (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
      url text NOT NULL,
      -- Null on endpoints from before subscriptions existed: they count as subscribed to payment.succeeded
      events text[] CHECK (cardinality(events) BETWEEN 1 AND 100),
      filters jsonb NOT NULL DEFAULT '{}',
      active boolean NOT NULL DEFAULT true,
      created_at timestamptz NOT NULL DEFAULT now(),
      updated_at timestamptz NOT NULL DEFAULT now(),
      deleted_at timestamptz,
      -- The times of the last synthetic tests, at least those of the last minute: at most five, so that the limit per
      -- minute is exact for any number of processes, and needs no search through deliveries
      recent_tests timestamptz[] NOT NULL DEFAULT '{}' CHECK (cardinality(recent_tests) <= 5),
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`
  // Excludes deleted endpoints, which are kept for their history: a program may create and delete one after the other
  yield* sql`
    CREATE INDEX endpoints_in_use ON payments.endpoints (organization_id, environment, id) WHERE deleted_at IS NULL`
  yield* sql`CREATE INDEX endpoints_deleted ON payments.endpoints (deleted_at) WHERE deleted_at IS NOT NULL`

  // The secret that signs new deliveries has no retired_at; a rotation retires it, and it keeps signing for 24 hours
  yield* sql`
    CREATE TABLE payments.endpoint_secrets (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
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
  // Few rows: recently rotated secrets
  yield* sql`
    CREATE INDEX endpoint_secrets_retired ON payments.endpoint_secrets (retired_at) WHERE retired_at IS NOT NULL`

  // total: how many deliveries had failed when it was started. reached_at and reached_id: the last delivery processed
  yield* sql`
    CREATE TABLE payments.recoveries (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
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

  // reached: database id of the last event processed. The replay id's time is also that of its deliveries' ids
  yield* sql`
    CREATE TABLE payments.event_replays (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      endpoint_id uuid NOT NULL,
      types text[],
      since timestamptz NOT NULL,
      until timestamptz NOT NULL CHECK (until > since),
      state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'finished', 'canceled')),
      queued bigint NOT NULL DEFAULT 0 CHECK (queued >= 0),
      skipped bigint NOT NULL DEFAULT 0 CHECK (skipped >= 0),
      reached text NOT NULL,
      stepped_at timestamptz NOT NULL DEFAULT now(),
      created_at timestamptz NOT NULL DEFAULT now(),
      finished_at timestamptz,
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment, endpoint_id) REFERENCES payments.endpoints,
      CHECK ((state = 'running') = (finished_at IS NULL))
    )`
  for (const table of ["recoveries", "event_replays"]) {
    const name = sql.literal(table)
    yield* sql`CREATE INDEX ${name}_of_endpoint ON payments.${name} (organization_id, environment, endpoint_id, id)`
    // One at a time per endpoint
    yield* sql`
      CREATE UNIQUE INDEX ${name}_running ON payments.${name} (organization_id, environment, endpoint_id)
      WHERE state = 'running'`
  }

  yield* sql`CREATE INDEX recoveries_age ON payments.recoveries (finished_at) WHERE state = 'finished'`
  yield* sql`CREATE INDEX event_replays_age ON payments.event_replays (finished_at) WHERE state <> 'running'`

  // One row per endpoint about which a warning was, or is being, sent
  yield* sql`
    CREATE TABLE payments.failure_warnings (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      endpoint_id uuid NOT NULL,
      quiet_until timestamptz NOT NULL,
      -- When the mail server accepted the last warning. Null if it accepted none, or if this is not known
      sent_at timestamptz,
      PRIMARY KEY (organization_id, environment, endpoint_id),
      FOREIGN KEY (organization_id, environment, endpoint_id) REFERENCES payments.endpoints
    )`

  yield* tenantVersions
})

/**
 * A version for each tenant, which changes with its endpoints, their signing secrets and its account. It lets a process
 * cache where a tenant's events go: the statement that stores an event compares versions, and an outdated cache entry
 * is read again.
 *
 * Triggers maintain it, so that no statement can forget to. No foreign key: a deleted tenant leaves its last version
 * behind.
 */
const tenantVersions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // A value never repeats, even if a tenant's row is deleted and created again
  yield* sql`CREATE SEQUENCE payments.tenant_version`
  yield* sql`
    CREATE TABLE payments.tenant_versions (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      version bigint NOT NULL DEFAULT nextval('payments.tenant_version'),
      PRIMARY KEY (organization_id, environment)
    ) WITH (fillfactor = 50)`

  yield* sql`
    CREATE FUNCTION payments.change_tenant_version() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP <> 'INSERT' THEN
        INSERT INTO payments.tenant_versions (organization_id, environment)
        VALUES (OLD.organization_id, OLD.environment)
        ON CONFLICT (organization_id, environment) DO UPDATE SET version = nextval('payments.tenant_version');
      END IF;
      IF TG_OP = 'INSERT'
        OR TG_OP = 'UPDATE' AND (NEW.organization_id, NEW.environment) <> (OLD.organization_id, OLD.environment)
      THEN
        INSERT INTO payments.tenant_versions (organization_id, environment)
        VALUES (NEW.organization_id, NEW.environment)
        ON CONFLICT (organization_id, environment) DO UPDATE SET version = nextval('payments.tenant_version');
      END IF;
      RETURN NULL;
    END
    $$`

  for (const [table, columns] of [
    ["endpoints", "organization_id, environment, events, filters, active, deleted_at"],
    ["endpoint_secrets", "organization_id, environment, endpoint_id, retired_at"],
    [
      "provider_accounts",
      "organization_id, environment, account_id, status, had_payments_before, first_payment_event_id"
    ]
  ] as const) {
    yield* sql`
      CREATE TRIGGER ${sql.literal(table)}_change_tenant_version
      AFTER INSERT OR DELETE OR UPDATE OF ${sql.literal(columns)} ON payments.${sql.literal(table)}
      FOR EACH ROW EXECUTE FUNCTION payments.change_tenant_version()`
  }
})
