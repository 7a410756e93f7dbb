import { SqlClient, type SqlError, type Statement } from "@effect/sql"
import { Clock, Effect } from "effect"

/**
 * Where a receipt is stored. A unique key can't span the months' tables, so that all copies of a notification must lead
 * to the same one:
 *
 * - What is stored already stays where it is, and its copy is counted there.
 * - A new one goes to the month in which it was created at the provider, which all of its copies say.
 * - If that is no time that a notification can have (by a clock gone mad), or there is no table for its month, it goes to
 *   `receipts_undated`.
 *
 * Copies that say the same time are found for as long as the receipt is kept, and even those that say another one for
 * four weeks.
 */
export type ReceiptPartition =
  /**
   * The table of this month or the last one, which nearly all are for; `others` are the further tables in which a new
   * notification might be. One that is in them is not stored.
   */
  | { readonly kind: "month"; readonly month: string; readonly others: ReadonlyArray<string> }
  /** To be searched for in all tables: whatever is old or odd. */
  | { readonly kind: "searched" }

/** What decides about a receipt's partition. */
interface Filed {
  readonly providerCreatedAt: Date
}

const millisPerDay = 24 * 3600 * 1000

const searched: ReceiptPartition = { kind: "searched" }

/** A month as in `2026-11`. */
const monthOf = (time: Date): string => time.toISOString().slice(0, 7)

const lastMonth = (now: Date): string => monthOf(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)))

/** How far ahead the provider's clock may be for its time to be believed, in days. */
const clockAhead = 1

/** The month in two days' time: something may have been filed under it already. */
const comingMonth = (now: Date): string => monthOf(new Date(now.getTime() + 2 * clockAhead * millisPerDay))

const tableOf = (month: string): string => `receipts_${month.replace("-", "")}`

/** How often it is looked for a month's table that is missing, in milliseconds. */
const lookAgain = 60_000

interface Tables {
  readonly months: ReadonlySet<string>
  readonly loadedAt: number
}

/** Finds the partitions of receipts. Knows the months that there are tables for: these stay for as long as they matter here. */
export const makeReceiptPartitions = Effect.map(SqlClient.SqlClient, (sql) => {
  let known: Tables | undefined

  const load = (now: number) =>
    Effect.map(
      sql<{ readonly month: string }>`SELECT to_char(month, 'YYYY-MM') AS month FROM payments.receipt_months`,
      (rows) => {
        known = { months: new Set(rows.map(({ month }) => month)), loadedAt: now }
        return known
      }
    )

  const partitionOf = (
    { months }: Tables,
    now: Date,
    recent: ReadonlyArray<string>,
    { providerCreatedAt }: Filed
  ): ReceiptPartition => {
    const month = monthOf(providerCreatedAt)
    if (!recent.includes(month) || !months.has(month)) return searched
    return {
      kind: "month",
      month,
      others: [
        "receipts_undated",
        ...[...new Set([...recent, comingMonth(now)])]
          .filter((other) => other !== month && months.has(other))
          .map(tableOf)
      ]
    }
  }

  /** The receipts by partition. */
  return <R extends Filed>(
    receipts: ReadonlyArray<R>
  ): Effect.Effect<ReadonlyArray<readonly [ReceiptPartition, ReadonlyArray<R>]>, SqlError.SqlError> =>
    Effect.flatMap(Clock.currentTimeMillis, (millis) => {
      const now = new Date(millis)
      const isEnough = (tables: Tables) => tables.months.has(comingMonth(now)) || millis < tables.loadedAt + lookAgain
      const tables =
        known !== undefined && isEnough(known) ? Effect.succeed(known) : Effect.withTracerEnabled(load(millis), false)
      return Effect.map(tables, (tables) => {
        const recent = [monthOf(now), lastMonth(now)]
        const partitions = new Map<string, [ReceiptPartition, Array<R>]>()
        for (const receipt of receipts) {
          const partition = partitionOf(tables, now, recent, receipt)
          const key = partition.kind === "month" ? partition.month : partition.kind
          const found = partitions.get(key)
          if (found === undefined) partitions.set(key, [partition, [receipt]])
          else found[1].push(receipt)
        }
        return [...partitions.values()]
      })
    })
})

const undated = "'infinity'::date"

/**
 * The rows that a statement for this partition stores, with the columns that `receiptParts` needs. All but those that are in
 * other tables; if all tables are searched, all.
 *
 * @param rows a query with at least the columns `environment`, `provider_event_id`, `provider_created_at` and `received_at`
 */
export const partitionedRows = (
  sql: SqlClient.SqlClient,
  partition: ReceiptPartition,
  rows: Statement.Fragment
): Statement.Fragment => {
  if (partition.kind === "month") {
    // Not EXISTS, which the planner may turn into a join that reads a whole month
    const isAbsent = partition.others.map(
      (table) => `(SELECT 1 FROM payments.${table} r
          WHERE r.environment = s.environment AND r.provider_event_id = s.provider_event_id) IS NULL`
    )
    return sql`SELECT s.* FROM (${rows}) s WHERE ${sql.literal(isAbsent.join(" AND "))}`
  }
  return sql`
      SELECT s.*, COALESCE(s.stored_under, CASE ${sql.literal(`
          WHEN s.own_month >= payments.month_at(-1)
            AND s.provider_created_at < GREATEST(now(), s.received_at) + interval '${clockAhead} days'
            AND EXISTS (SELECT 1 FROM payments.receipt_months m WHERE m.month = s.own_month) THEN s.own_month
          ELSE ${undated} END`)}) AS month
      FROM (
        SELECT s.*, payments.month_of(s.provider_created_at) AS own_month,
          payments.month_of_receipt(s.environment, s.provider_event_id) AS stored_under
        FROM (${rows}) s
        -- Searches once
        OFFSET 0
      ) s`
}

/**
 * The parts that store the receipts of `source`, which `partitionedRows` has made, the last of them `receipt`: the stored rows,
 * each with whether it is for the first copy. Follow `matching`.
 */
export const receiptParts = (sql: SqlClient.SqlClient, partition: ReceiptPartition): Statement.Fragment => {
  const table = partition.kind === "month" ? tableOf(partition.month) : "receipts"
  const month = partition.kind === "month" ? `'${partition.month}-01'::date` : "s.month"
  return sql`receipt AS (${sql.literal(`
      INSERT INTO payments.${table} AS r (environment, provider_event_id, organization_id, account_id, type, livemode,
        outcome, reason, provider_created_at, received_at, month)
      SELECT s.environment, s.provider_event_id, s.organization_id, s.account_id, s.type, s.livemode,
        CASE WHEN s.outcome NOT IN ('delivered', 'no_subscriber') THEN s.outcome
          WHEN s.position IN (SELECT m.position FROM matching m WHERE m.active) THEN 'delivered'
          ELSE 'no_subscriber' END,
        s.reason, s.provider_created_at, s.received_at, ${month}
      FROM source s
      -- Always in one order: two statements that have receipts in common never wait for each other
      ORDER BY s.environment, s.provider_event_id
      ON CONFLICT (environment, provider_event_id, month) DO UPDATE SET duplicates = r.duplicates + 1
      RETURNING r.environment, r.provider_event_id, r.duplicates = 0 AS first, r.outcome`)})`
}
