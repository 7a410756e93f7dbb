import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * Counts of payments and deliveries by day, for charts of the last months: see `src/destinations/statistics/`. Filled in
 * the background; the statements that store and move deliveries do not touch them.
 */
export const statistics = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // pass 0: settled counts, in one row with the day's beginning as its slot. 1 and 2: the first and the second count of
  // a slot that is not settled yet
  yield* sql`
    CREATE TABLE payments.payment_counts (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      day date NOT NULL,
      pass smallint NOT NULL CHECK (pass BETWEEN 0 AND 2),
      slot timestamptz NOT NULL,
      currency text COLLATE "C" NOT NULL,
      kind text COLLATE "C" NOT NULL CHECK (kind IN ('succeeded', 'failed', 'refunded')),
      count bigint NOT NULL,
      amount numeric NOT NULL,
      PRIMARY KEY (organization_id, environment, day, pass, slot, currency, kind)
    ) WITH (fillfactor = 70)`
  yield* sql`
    CREATE TABLE payments.delivery_counts (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      day date NOT NULL,
      pass smallint NOT NULL CHECK (pass BETWEEN 0 AND 2),
      slot timestamptz NOT NULL,
      endpoint_id uuid NOT NULL,
      delivered bigint NOT NULL,
      failed bigint NOT NULL,
      queued bigint NOT NULL,
      PRIMARY KEY (organization_id, environment, day, pass, slot, endpoint_id)
    ) WITH (fillfactor = 70)`
  for (const table of ["payment_counts", "delivery_counts"]) {
    yield* sql`
      CREATE INDEX ${sql.literal(`${table}_unsettled`)} ON payments.${sql.literal(table)} (slot) WHERE pass > 0`
    yield* sql`CREATE INDEX ${sql.literal(`${table}_age`)} ON payments.${sql.literal(table)} (day)`
  }

  // Deliveries to one endpoint, with ids in (after_id, until_id], whose counts may still change: some wait or may be
  // re-sent, or a replay adds to them
  yield* sql`
    CREATE TABLE payments.unsettled_deliveries (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      endpoint_id uuid NOT NULL,
      after_id uuid NOT NULL,
      until_id uuid NOT NULL CHECK (until_id > after_id),
      slot timestamptz NOT NULL,
      delivered bigint NOT NULL,
      failed bigint NOT NULL,
      queued bigint NOT NULL,
      look_at timestamptz NOT NULL,
      PRIMARY KEY (organization_id, environment, endpoint_id, after_id)
    ) WITH (fillfactor = 70)`
  yield* sql`CREATE INDEX unsettled_deliveries_due ON payments.unsettled_deliveries (look_at)`

  // The refunded amount of a charge as of the last event that was counted for good, while part of the charge is not
  // refunded. A refund event gives the amount refunded so far, and the events before it may have been removed. The key
  // is a hash of charge and payment, since a team's own events may have ids of any form
  yield* sql`
    CREATE TABLE payments.refunded_in_part (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      charge_key uuid NOT NULL,
      event_id text NOT NULL,
      refunded numeric NOT NULL,
      counted_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, charge_key)
    )`
  yield* sql`CREATE INDEX refunded_in_part_age ON payments.refunded_in_part (counted_at)`

  // Progress of each count: everything stored from since (inclusive) to until (exclusive) is counted
  yield* sql`
    CREATE TABLE payments.count_passes (
      pass smallint PRIMARY KEY CHECK (pass IN (1, 2)),
      since timestamptz NOT NULL,
      until timestamptz NOT NULL CHECK (until >= since)
    )`
  yield* sql`
    INSERT INTO payments.count_passes (pass, since, until)
    SELECT pass, since, since FROM generate_series(1, 2) AS pass,
      date_bin('5 minutes', now(), timestamptz '2000-01-01 00:00:00+00') AS since`
})
