import { SqlClient, type SqlError } from "@effect/sql"
import { Clock, Effect } from "effect"
import { receiptMonths } from "../platform/storage/ReceiptMonths.ts"

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
export const clockAhead = 1

/** The month in two days' time: receipts may already be stored under it. */
const comingMonth = (now: Date): string => monthOf(new Date(now.getTime() + 2 * clockAhead * millisPerDay))

/** The table of a month. */
export const tableOf = (month: string): string => `receipts_${month.replace("-", "")}`

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
    Effect.map(Effect.provideService(receiptMonths, SqlClient.SqlClient, sql), (months) => {
      known = { months, loadedAt: now }
      return known
    })

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
