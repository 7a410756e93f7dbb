import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"

/**
 * Moves of organizations between cells: see `src/cells/move/`. Tables and functions that cost nothing while no
 * organization is being moved: the triggers that call the functions exist only then.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`

  // Moves under way, at both ends
  yield* sql`
    CREATE TABLE payments.moves (
      organization_id uuid PRIMARY KEY,
      id uuid NOT NULL,
      role text NOT NULL CHECK (role IN ('leaving', 'arriving')),
      from_cell text NOT NULL,
      to_cell text NOT NULL,
      phase text NOT NULL CHECK (phase IN ('copying', 'parking', 'fenced', 'moved')),
      author text NOT NULL,
      started_at timestamptz NOT NULL DEFAULT now(),
      changed_at timestamptz NOT NULL DEFAULT now()
    )`

  // What is left of an organization that has moved: where to, and what it was known by, so that a request that still
  // comes here is asked to come again, and not refused
  yield* sql`
    CREATE TABLE payments.moved_organizations (
      organization_id uuid PRIMARY KEY,
      cell text NOT NULL,
      moved_by text NOT NULL,
      moved_at timestamptz NOT NULL DEFAULT now()
    )`
  yield* sql`
    CREATE TABLE payments.moved_accounts (
      environment text NOT NULL,
      account_id text NOT NULL,
      organization_id uuid NOT NULL,
      PRIMARY KEY (environment, account_id)
    )`
  yield* sql`CREATE INDEX moved_accounts_of_organization ON payments.moved_accounts (organization_id)`
  // Hashes of API keys, sessions, sign-in links and invitations
  yield* sql`
    CREATE TABLE payments.moved_credentials (
      hash bytea PRIMARY KEY CHECK (length(hash) = 32),
      organization_id uuid NOT NULL
    )`
  yield* sql`CREATE INDEX moved_credentials_of_organization ON payments.moved_credentials (organization_id)`
  // Receipts that did not come along, since another organization's receipt of the same notification is there
  yield* sql`
    CREATE TABLE payments.move_conflicts (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      provider_event_id text NOT NULL,
      PRIMARY KEY (organization_id, environment, provider_event_id)
    )`

  // How far the move of an organization is, for a write of it: held until the writer's transaction ends, so that the mover
  // waits for it before it changes that
  yield* sql`
    CREATE FUNCTION payments.moving_phase(of_organization uuid) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE known text;
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(hashtextextended(of_organization::text, 5190277307));
      SELECT CASE WHEN m.role = 'arriving' OR m.phase = 'moved' THEN 'fenced' ELSE m.phase END INTO known
      FROM payments.moves m WHERE m.organization_id = of_organization;
      IF known IS NULL AND EXISTS (SELECT 1 FROM payments.moved_organizations o WHERE o.organization_id = of_organization)
      THEN RETURN 'fenced'; END IF;
      RETURN COALESCE(known, 'copying');
    END $$`

  // The fence. Its arguments are the organization, and what happens to a write behind it: 'refuse', with a state that is
  // answered 503, so that the client or provider repeats it and finds the other cell; 'skip', for statements that concern
  // other organizations too; 'uses', to leave out a change of the columns that follow alone, and refuse others. New rows of
  // the queue ('park') are put under the mover's lease before, which does not end, so that no worker takes them
  yield* sql`
    CREATE FUNCTION payments.fence_moving() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      of_organization uuid := TG_ARGV[0]::uuid;
      phase text;
    BEGIN
      IF current_setting('payments.mover', true) = 'on' THEN RETURN COALESCE(NEW, OLD); END IF;
      IF TG_TABLE_NAME IN ('people', 'sessions', 'login_tokens') AND NOT EXISTS (
        SELECT 1 FROM payments.memberships m JOIN payments.people p ON p.id = m.person_id
        CROSS JOIN (SELECT to_jsonb(COALESCE(NEW, OLD)) AS r) w
        WHERE m.organization_id = of_organization AND CASE TG_TABLE_NAME
          WHEN 'people' THEN p.id::text = w.r ->> 'id'
          WHEN 'sessions' THEN p.id::text = w.r ->> 'person_id'
          ELSE p.email = w.r ->> 'email' END
      ) THEN RETURN COALESCE(NEW, OLD); END IF;
      phase := payments.moving_phase(of_organization);
      IF phase = 'parking' AND TG_ARGV[1] = 'park' THEN
        IF NEW.lease IS NOT NULL THEN NEW.attempt_count := NEW.attempt_count - 1; END IF;
        NEW.lease := NEW.organization_id;
        NEW.leased_until := 'infinity';
        NEW.claimed_at := COALESCE(NEW.claimed_at, now());
      END IF;
      IF phase <> 'fenced' THEN RETURN COALESCE(NEW, OLD); END IF;
      IF TG_ARGV[1] = 'skip' THEN RETURN NULL; END IF;
      IF TG_ARGV[1] = 'uses' AND to_jsonb(NEW) - TG_ARGV[2:TG_NARGS - 1] = to_jsonb(OLD) - TG_ARGV[2:TG_NARGS - 1]
      THEN RETURN NULL; END IF;
      RAISE EXCEPTION 'The organization is moving to another cell' USING ERRCODE = 'CPM01';
    END $$`

  // At the target, for rows that replication brings. A receipt of nobody gives way to that of its organization
  yield* sql`
    CREATE FUNCTION payments.admit_moved_receipt() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
    BEGIN
      IF payments.month_of_receipt(NEW.environment, NEW.provider_event_id) IS NULL THEN RETURN NEW; END IF;
      DELETE FROM payments.receipts r WHERE r.environment = NEW.environment
        AND r.provider_event_id = NEW.provider_event_id AND r.organization_id IS NULL;
      DELETE FROM payments.receipts_by_month r WHERE r.environment = NEW.environment
        AND r.provider_event_id = NEW.provider_event_id AND r.organization_id IS NULL;
      IF payments.month_of_receipt(NEW.environment, NEW.provider_event_id) IS NULL THEN RETURN NEW; END IF;
      INSERT INTO payments.move_conflicts (organization_id, environment, provider_event_id)
      VALUES (NEW.organization_id, NEW.environment, NEW.provider_event_id) ON CONFLICT DO NOTHING;
      RETURN NULL;
    END $$`

  // Called for what is not known here. An account may have been unlinked in the other cell since, and be nobody's: after a
  // while it is taken for that
  yield* sql`
    CREATE FUNCTION payments.refuse_moved_account(of_environment text, of_account text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM payments.moved_accounts m JOIN payments.moved_organizations o USING (organization_id)
        WHERE m.environment = of_environment AND m.account_id = of_account AND o.moved_at > now() - interval '30 days')
      THEN RAISE EXCEPTION 'The organization has moved to another cell' USING ERRCODE = 'CPM01'; END IF;
    END $$`
  yield* sql`
    CREATE FUNCTION payments.refuse_moved_credential(of_hash bytea) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM payments.moved_credentials m WHERE m.hash = of_hash)
      THEN RAISE EXCEPTION 'The organization has moved to another cell' USING ERRCODE = 'CPM01'; END IF;
    END $$`

  // An organization's receipts are replicated by its id, which is not in their key: the log of a change then needs the
  // whole row. Only with wal_level = logical does that cost anything, and receipts rarely change
  yield* sql`
    DO $$
    DECLARE receipts record;
    BEGIN
      FOR receipts IN SELECT 'payments.receipts'::regclass AS name UNION ALL
        SELECT relid::regclass FROM pg_partition_tree('payments.receipts_by_month')
      LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', receipts.name);
      END LOOP;
    END $$`
  yield* sql`
    CREATE OR REPLACE FUNCTION payments.add_receipt_month(wanted date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE name text := 'receipts_' || to_char(wanted, 'YYYYMM');
    BEGIN
      PERFORM pg_advisory_xact_lock(5190277304);
      IF to_regclass('payments.' || name) IS NULL THEN
        EXECUTE format('CREATE TABLE payments.%I (LIKE payments.receipts_by_month INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE payments.%I REPLICA IDENTITY FULL', name);
        EXECUTE format('ALTER TABLE payments.receipts_by_month ATTACH PARTITION payments.%I FOR VALUES IN (%L)', name, wanted);
      END IF;
      INSERT INTO payments.receipt_months (month) VALUES (wanted) ON CONFLICT (month) DO NOTHING;
    END $$`
})
