import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * A version for each tenant, which changes with its endpoints, their signing secrets and its account. So a process may
 * remember where a tenant's events go: the statement that stores an event compares versions, and what was remembered
 * before a change is looked up anew.
 *
 * Triggers keep it, so that no statement can forget to, those of processes of the previous version included. No foreign
 * key: a tenant that is deleted leaves its last version behind.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Never the same twice, even if a tenant's row were deleted and created again
  yield* sql`CREATE SEQUENCE payments.tenant_version`
  yield* sql`
    CREATE TABLE payments.tenant_versions (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
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
