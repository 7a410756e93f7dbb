import { SqlClient, type SqlError, type Statement } from "@effect/sql"
import { Clock, Effect } from "effect"

/**
 * The partition that stores a receipt. A unique key can't span the months' tables, so all copies of a notification must
 * lead to the same one:
 *
 * - An already stored receipt stays where it is, and its copy is counted there.
 * - A new one goes to the month in which it was created at the provider, which is the same for all its copies.
 * - If that time is implausible (by a wrong clock), or there is no table for its month, it goes to `receipts_undated`.
 *
 * Copies with the same time are found for as long as the receipt is kept, and even those with another time for four
 * weeks.
 */
export type ReceiptPartition =
  | MonthPartition
  /** All tables must be searched: the receipt is old or its time implausible. */
  | { readonly kind: "searched" }

/**
 * The table of this month or the last one, which nearly all receipts go to; `others` are the further tables that might
 * already contain the notification, in which case this statement does not store it.
 */
export interface MonthPartition {
  readonly kind: "month"
  readonly month: string
  readonly others: ReadonlyArray<string>
}

/** The part of a receipt that determines its partition. */
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

/** The month in two days' time: receipts may already be stored under it. */
const comingMonth = (now: Date): string => monthOf(new Date(now.getTime() + 2 * clockAhead * millisPerDay))

const tableOf = (month: string): string => `receipts_${month.replace("-", "")}`

/** How often to look again for a missing month's table, in milliseconds. */
const lookAgain = 60_000

interface Tables {
  readonly months: ReadonlySet<string>
  readonly loadedAt: number
}

/** Finds the partitions of receipts. Caches which months have tables: these exist for as long as they matter here. */
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

  /** Groups receipts by partition. */
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
 * SQL: the rows that a statement for this partition stores, with the columns that `receiptParts` needs: those in no
 * other table, or all if all tables are searched.
 *
 * @param rows a query with at least the columns `environment`, `provider_event_id`, `provider_created_at` and
 * `received_at`
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
 * SQL: the parts that store the receipts of `source`, which `partitionedRows` has made. The last part, `receipt`, has
 * the stored rows, each with whether it is the first copy. They must follow `matching`.
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
