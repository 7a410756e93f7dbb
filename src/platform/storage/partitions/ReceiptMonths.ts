import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect } from "effect"
import { lockKey } from "../Schema.ts"
import { removePartitions } from "./PartitionRemoval.ts"

/**
 * The partitions of `payments.receipts`: one for each month in UTC, and `receipts_undated` for receipts with
 * implausible times.
 */

/** How many months ahead partitions exist. Without one, receipts go to `receipts_undated`: nothing is refused. */
const monthsAhead = 2

/** How many months before the current one are never removed: statements that store receipts name the last one. */
const lastMonths = 2

export const addReceiptMonths: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    // Check and creation are one statement, so no table is created twice
    Effect.asVoid(sql`
      SELECT payments.add_receipt_month(wanted::date)
      FROM generate_series(payments.month_at(0)::timestamp, payments.month_at(${monthsAhead}::int)::timestamp,
        interval '1 month') AS wanted
      WHERE NOT EXISTS (SELECT 1 FROM payments.receipt_months m WHERE m.month = wanted::date)`)
)

/** The months that have tables, as in `2026-11`. */
export const receiptMonths: Effect.Effect<ReadonlySet<string>, SqlError.SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    Effect.map(
      sql<{ readonly month: string }>`SELECT to_char(month, 'YYYY-MM') AS month FROM payments.receipt_months`,
      (rows) => new Set(rows.map(({ month }) => month))
    )
)

const monthRemovalLock = lockKey(5_190_277_305)

/**
 * Removes the months without a new receipt for this long: see `removePartitions`. Returns how many were dropped. A
 * month's receipts arrive during it and until the provider stops retrying its events, so the time of the last one
 * counts.
 */
export const removeReceiptMonths = (
  keepFor: Duration.Duration
): Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient> => {
  const keptSince = `now() - ${Duration.toMillis(keepFor)} * interval '1 millisecond'`
  return removePartitions({
    lock: monthRemovalLock,
    // Not EXISTS, which the planner may turn into a join that reads all receipts
    forget: `
      DELETE FROM payments.receipt_months m
      WHERE m.month < payments.month_at(-${lastMonths})
        AND (m.month + interval '1 month') AT TIME ZONE 'UTC' < ${keptSince}
        AND (
          SELECT 1 FROM payments.receipts r
          WHERE r.month = m.month AND r.environment IN ('sandbox', 'production') AND r.received_at >= ${keptSince} LIMIT 1
        ) IS NULL`,
    isForgotten: `c.relname ~ '^receipts_[0-9]{6}$'
      AND NOT EXISTS (SELECT 1 FROM payments.receipt_months m WHERE to_char(m.month, 'YYYYMM') = right(c.relname, 6))`
  })
}

/** Rare outcomes that operators search for: an index holds only these. */
export const rareOutcomes = ["unlinked", "wrong_mode", "malformed"] as const

const rare = rareOutcomes.map((outcome) => `'${outcome}'`).join(", ")

/** The rest of CREATE INDEX after the table, for the index of rare outcomes. */
export const rareReceipts = `(environment, outcome, received_at) WHERE outcome IN (${rare})`
