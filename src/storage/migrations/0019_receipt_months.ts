import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"
import { preparedIndexes, rareReceipts } from "../ReceiptMonths.ts"

/**
 * Receipts in tables by month, so that retention drops a month instead of deleting rows. The table so far stays as it
 * is, under its name, for what comes before the months begin, with `payments.receipt_months_from()`: in an installation
 * that has receipts, with the first month that begins in three days or later. Until then both versions of the service
 * store receipts in it, and find each other's copies by its key. It is then emptied by retention. Nothing is copied or
 * read, and the locks are held for a moment.
 *
 * A receipt belongs to the month in which its notification was created at the provider, since all copies have that time
 * in common, and a unique key can't span months. See `filingPart` in `src/inbound/` for those whose time is odd.
 *
 * With it come indexes so that lists read no more than they show: of receipts with a rare outcome, and of the audit log by
 * environment.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`
  yield* sql`LOCK TABLE payments.receipts IN ACCESS EXCLUSIVE MODE`

  yield* sql`
    CREATE FUNCTION payments.month_of(moment timestamptz) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
      SELECT date_trunc('month', moment AT TIME ZONE 'UTC')::date
    $$`
  // The first day of this month (0), the last one (-1), the next one (1)
  yield* sql`
    CREATE FUNCTION payments.month_at(months int) RETURNS date LANGUAGE sql STABLE PARALLEL SAFE AS $$
      SELECT (payments.month_of(now()) + months * interval '1 month')::date
    $$`
  yield* sql`
    DO $$
    DECLARE
      is_new boolean := NOT EXISTS (SELECT 1 FROM payments.receipts);
      first_month date := payments.month_of(CASE WHEN is_new THEN now() ELSE now() + interval '3 days' END);
    BEGIN
      IF NOT is_new THEN first_month := first_month + interval '1 month'; END IF;
      EXECUTE format($f$
        CREATE FUNCTION payments.receipt_months_from() RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
        $body$ SELECT timestamptz %L $body$ $f$, first_month || ' 00:00:00+00');
    END $$`

  // month: 'infinity' for those whose time is odd
  yield* sql`
    CREATE TABLE payments.receipts_by_month (
      LIKE payments.receipts INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE,
      month date NOT NULL,
      PRIMARY KEY (environment, provider_event_id, month)
    ) PARTITION BY LIST (month)`
  yield* sql`
    CREATE INDEX receipts_by_month_of_organization
    ON payments.receipts_by_month (organization_id, environment, received_at)`
  yield* sql`CREATE INDEX receipts_by_month_age ON payments.receipts_by_month (environment, received_at)`
  yield* sql`CREATE INDEX receipts_by_month_rare ON payments.receipts_by_month ${sql.literal(rareReceipts)}`
  yield* sql`
    CREATE TABLE payments.receipts_undated PARTITION OF payments.receipts_by_month FOR VALUES IN ('infinity')`

  // A process of the previous version that is left over is refused: it would not find what is stored by month. Not
  // validated, since older rows hold to it anyway
  yield* sql`
    ALTER TABLE payments.receipts ADD CONSTRAINT receipts_before_months CHECK (
      provider_created_at < payments.receipt_months_from() OR received_at < payments.receipt_months_from()) NOT VALID`

  yield* sql`
    CREATE VIEW payments.all_receipts AS
    SELECT '-infinity'::date AS month, environment, provider_event_id, organization_id, account_id, type, livemode, outcome,
      reason, duplicates, provider_created_at, received_at FROM payments.receipts
    UNION ALL
    SELECT month, environment, provider_event_id, organization_id, account_id, type, livemode, outcome,
      reason, duplicates, provider_created_at, received_at FROM payments.receipts_by_month`

  // The months that there are tables for
  yield* sql`CREATE TABLE payments.receipt_months (month date PRIMARY KEY)`

  // Attaching a table that exists takes a lock that neither reads nor writes wait for; creating it as a partition does not
  yield* sql`
    CREATE FUNCTION payments.add_receipt_month(wanted date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE name text := 'receipts_' || to_char(wanted, 'YYYYMM');
    BEGIN
      PERFORM pg_advisory_xact_lock(5190277304);
      IF to_regclass('payments.' || name) IS NULL THEN
        EXECUTE format('CREATE TABLE payments.%I (LIKE payments.receipts_by_month INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE payments.receipts_by_month ATTACH PARTITION payments.%I FOR VALUES IN (%L)', name, wanted);
      END IF;
      INSERT INTO payments.receipt_months (month) VALUES (wanted) ON CONFLICT (month) DO NOTHING;
    END $$`

  // Where a notification of an odd time is stored, if it is. A function, since it is rarely needed, and a part of the
  // statement that stores receipts would begin by opening every month's table
  yield* sql`
    CREATE FUNCTION payments.month_of_receipt(of_environment text, of_id text) RETURNS date LANGUAGE sql STABLE
    SET enable_seqscan = off AS $$
      SELECT month FROM payments.all_receipts r WHERE r.environment = of_environment AND r.provider_event_id = of_id LIMIT 1
    $$`

  // `prepareReceiptMonths` has built them while the service worked
  for (const { name, on } of preparedIndexes) {
    yield* sql`CREATE INDEX IF NOT EXISTS ${sql.literal(name)} ON ${sql.literal(on)}`
  }
})
