import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { rareReceipts } from "../partitions/ReceiptMonths.ts"

/**
 * Receipts, partitioned by month, so that retention drops a month instead of deleting rows. A receipt belongs to the
 * month in which its notification was created at the provider, since all copies have that time in common, and a unique
 * key can't span months. See `src/inbound/ReceiptStatement.ts` for receipts with implausible times.
 */
export const receipts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE FUNCTION payments.month_of(instant timestamptz) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
      SELECT date_trunc('month', instant AT TIME ZONE 'UTC')::date
    $$`
  // The first day of this month (0), the previous one (-1), the next one (1)
  yield* sql`
    CREATE FUNCTION payments.month_at(months int) RETURNS date LANGUAGE sql STABLE PARALLEL SAFE AS $$
      SELECT (payments.month_of(now()) + months * interval '1 month')::date
    $$`

  // One row per verified notification, ours or not: organization_id is null if no account is linked
  yield* sql`
    CREATE TABLE payments.receipts (
      environment text COLLATE "C" NOT NULL CHECK (environment IN ('sandbox', 'production')),
      provider_event_id text COLLATE "C" NOT NULL,
      organization_id uuid,
      account_id text,
      type text NOT NULL,
      livemode boolean NOT NULL,
      outcome text COLLATE "C" NOT NULL
        CHECK (outcome IN ('delivered', 'no_subscriber', 'ignored', 'unlinked', 'wrong_mode', 'malformed')),
      -- Why it is malformed: the paths of the fields that are missing or not as expected, never values
      reason text,
      duplicates integer NOT NULL DEFAULT 0,
      -- Stored from the provider's list of events, since no notification had come
      reconciled boolean NOT NULL DEFAULT false,
      provider_created_at timestamptz NOT NULL,
      received_at timestamptz NOT NULL DEFAULT now(),
      -- 'infinity' if the time is implausible
      month date NOT NULL,
      PRIMARY KEY (environment, provider_event_id, month)
    ) PARTITION BY LIST (month)`
  yield* sql`CREATE INDEX receipts_of_organization ON payments.receipts (organization_id, environment, received_at)`
  // Grows at its end: the newest receipts are listed and the oldest removed without a scan
  yield* sql`CREATE INDEX receipts_age ON payments.receipts (environment, received_at)`
  yield* sql`CREATE INDEX receipts_rare ON payments.receipts ${sql.literal(rareReceipts)}`
  yield* sql`CREATE TABLE payments.receipts_undated PARTITION OF payments.receipts FOR VALUES IN ('infinity')`

  // The months that have tables
  yield* sql`CREATE TABLE payments.receipt_months (month date PRIMARY KEY)`

  // Attaching an existing table takes a lock that blocks neither reads nor writes; creating it as a partition would
  // block both
  yield* sql`
    CREATE FUNCTION payments.add_receipt_month(wanted date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE name text := 'receipts_' || to_char(wanted, 'YYYYMM');
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtextextended('"payments"', 5190277304));
      IF to_regclass('payments.' || name) IS NULL THEN
        EXECUTE format('CREATE TABLE payments.%I (LIKE payments.receipts INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE payments.receipts ATTACH PARTITION payments.%I FOR VALUES IN (%L)', name, wanted);
      END IF;
      INSERT INTO payments.receipt_months (month) VALUES (wanted) ON CONFLICT (month) DO NOTHING;
    END $$`

  // The partition of a notification with an implausible time, if it is stored. A function, since it is rarely needed,
  // and as a part of the statement that stores receipts it would make each of them open every month's table
  yield* sql`
    CREATE FUNCTION payments.month_of_receipt(of_environment text, of_id text) RETURNS date LANGUAGE sql STABLE
    SET enable_seqscan = off AS $$
      SELECT month FROM payments.receipts r WHERE r.environment = of_environment AND r.provider_event_id = of_id LIMIT 1
    $$`
})
