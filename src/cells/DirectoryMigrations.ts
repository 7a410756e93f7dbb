import { Migrator, SqlClient, type SqlError } from "@effect/sql"
import { Effect, Schedule } from "effect"
import { lastApplied, MigrationFailed } from "../storage/Migrations.ts"

/** The directory's own schema, `payments_directory`, in a database of its own. */

const initial = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE payments_directory.cells (
      name text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,31}$'),
      url text NOT NULL,
      home boolean NOT NULL DEFAULT false,
      changed_at timestamptz NOT NULL DEFAULT now()
    )`
  yield* sql`CREATE UNIQUE INDEX cells_one_home ON payments_directory.cells (home) WHERE home`

  yield* sql`
    CREATE TABLE payments_directory.organizations (
      id uuid PRIMARY KEY,
      cell text NOT NULL REFERENCES payments_directory.cells,
      moving_to text REFERENCES payments_directory.cells CHECK (moving_to <> cell),
      version bigint NOT NULL DEFAULT 1,
      changed_at timestamptz NOT NULL DEFAULT now()
    )`
  yield* sql`CREATE INDEX organizations_of_cell ON payments_directory.organizations (cell, id)`

  yield* sql`
    CREATE TABLE payments_directory.accounts (
      environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
      account_id text NOT NULL CHECK (length(account_id) <= 255),
      organization_id uuid NOT NULL REFERENCES payments_directory.organizations,
      version bigint NOT NULL DEFAULT 1,
      changed_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (environment, account_id)
    )`
  yield* sql`CREATE INDEX accounts_of_organization ON payments_directory.accounts (organization_id)`

  // Only a hash of the address is kept: the directory needs to recognize people, not to write to them
  yield* sql`
    CREATE TABLE payments_directory.people (
      email_hash bytea PRIMARY KEY CHECK (length(email_hash) = 32),
      cell text NOT NULL REFERENCES payments_directory.cells,
      organization_id uuid REFERENCES payments_directory.organizations,
      version bigint NOT NULL DEFAULT 1,
      changed_at timestamptz NOT NULL DEFAULT now()
    )`
  yield* sql`CREATE INDEX people_of_organization ON payments_directory.people (organization_id)`
  yield* sql`CREATE INDEX people_of_cell ON payments_directory.people (cell, email_hash)`

  // Tells routers what to forget. A claim that only raises a version changes no route
  yield* sql`
    CREATE FUNCTION payments_directory.tell() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      changed record := COALESCE(NEW, OLD);
    BEGIN
      PERFORM pg_notify('payments_directory', CASE TG_TABLE_NAME
        WHEN 'organizations' THEN 'organization:' || (to_jsonb(changed) ->> 'id')
        WHEN 'accounts' THEN
          'account:' || (to_jsonb(changed) ->> 'environment') || ':' || (to_jsonb(changed) ->> 'account_id')
        WHEN 'people' THEN 'person:' || substr(to_jsonb(changed) ->> 'email_hash', 3)
        ELSE 'cells' END);
      RETURN NULL;
    END $$`
  for (const [table, routes] of [
    ["cells", "OLD.url IS DISTINCT FROM NEW.url OR OLD.home IS DISTINCT FROM NEW.home"],
    ["organizations", "OLD.cell IS DISTINCT FROM NEW.cell"],
    ["accounts", "OLD.organization_id IS DISTINCT FROM NEW.organization_id"],
    ["people", "OLD.cell IS DISTINCT FROM NEW.cell OR OLD.organization_id IS DISTINCT FROM NEW.organization_id"]
  ] as const) {
    yield* sql`
      CREATE TRIGGER ${sql.literal(`${table}_added`)} AFTER INSERT OR DELETE ON ${sql.literal(`payments_directory.${table}`)}
      FOR EACH ROW EXECUTE FUNCTION payments_directory.tell()`
    yield* sql`
      CREATE TRIGGER ${sql.literal(`${table}_changed`)} AFTER UPDATE ON ${sql.literal(`payments_directory.${table}`)}
      FOR EACH ROW WHEN (${sql.literal(routes)}) EXECUTE FUNCTION payments_directory.tell()`
  }
})

/** The directory's migrations; one that was released never changes. */
const migrations: Readonly<Record<string, Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>>> = {
  "0001_initial": initial
}

const table = "payments_directory.migrations"

const failed = (cause: unknown) =>
  new MigrationFailed({
    message: `The directory's schema could not be brought up to date: ${cause instanceof Error ? cause.message : String(cause)}`,
    cause
  })

/**
 * Creates the schema `payments_directory`, or brings it up to date. Safe if any number of processes do so at once: those
 * that come second repeat, and find nothing to do.
 */
export const migrateDirectory: Effect.Effect<void, MigrationFailed, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Not IF NOT EXISTS alone, which asks for the right to create schemas even if this one is there
  const [found] = yield* sql`SELECT 1 FROM pg_namespace WHERE nspname = 'payments_directory'`
  if (found === undefined) yield* sql`CREATE SCHEMA IF NOT EXISTS payments_directory`
  if (((yield* lastApplied(table)) ?? 0) >= Object.keys(migrations).length) return
  yield* Migrator.make({})({ loader: Migrator.fromRecord(migrations), table })
}).pipe(
  Effect.catchAllDefect((cause) => Effect.fail(failed(cause))),
  Effect.mapError((cause) => (cause instanceof MigrationFailed ? cause : failed(cause))),
  Effect.retry(Schedule.intersect(Schedule.jittered(Schedule.spaced("200 millis")), Schedule.recurs(5)))
)
