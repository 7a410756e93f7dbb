import type { AnswerOf } from "../../api/Types.ts"

/** Converts the statistics to daily series for charts, and to sums. Days are in UTC. Pure. */

export type Statistics = AnswerOf<"statistics", "get">

const dayMillis = 24 * 60 * 60 * 1000

/** Draws at most this many days, whatever the response says. */
const maxDays = 400

/** Every day from the first to the last, such as `2026-11-23`. */
export const daysOf = ({ from, until }: Pick<Statistics, "from" | "until">): ReadonlyArray<string> => {
  const first = Date.parse(`${from}T00:00:00Z`)
  const last = Date.parse(`${until}T00:00:00Z`)
  if (!(last >= first)) return []
  const count = Math.min(maxDays, Math.round((last - first) / dayMillis) + 1)
  return Array.from({ length: count }, (_, day) => new Date(first + day * dayMillis).toISOString().slice(0, 10))
}

/** One value per day; 0 on days without an entry. */
const perDay = <Entry extends { readonly date: string }>(
  days: ReadonlyArray<string>,
  entries: ReadonlyArray<Entry>,
  valueOf: (entry: Entry) => number
): ReadonlyArray<number> => {
  const byDay = new Map<string, number>()
  for (const entry of entries) byDay.set(entry.date, (byDay.get(entry.date) ?? 0) + valueOf(entry))
  return days.map((day) => byDay.get(day) ?? 0)
}

/** A sum of amounts as a bigint, since it may exceed what a number holds exactly. */
const sumOf = (amounts: ReadonlyArray<string>): bigint => amounts.reduce((sum, amount) => sum + BigInt(amount), 0n)

export interface CurrencyFigures {
  readonly currency: string
  readonly received: bigint
  readonly refunded: bigint
  /** The number of refunds that did not reach the payer, and their amount. */
  readonly refundsFailed: number
  readonly refundFailed: bigint
  readonly succeeded: number
  readonly failed: number
}

export const currenciesOf = ({ payments }: Pick<Statistics, "payments">): ReadonlyArray<CurrencyFigures> =>
  [...new Set(payments.map(({ currency }) => currency))]
    .map((currency) => {
      const own = payments.filter((day) => day.currency === currency)
      return {
        currency,
        received: sumOf(own.map(({ succeeded }) => succeeded.amount)),
        refunded: sumOf(own.map(({ refunded }) => refunded.amount)),
        refundsFailed: own.reduce((sum, { refundFailed }) => sum + refundFailed.count, 0),
        refundFailed: sumOf(own.map(({ refundFailed }) => refundFailed.amount)),
        succeeded: own.reduce((sum, { succeeded }) => sum + succeeded.count, 0),
        failed: own.reduce((sum, { failed }) => sum + failed.count, 0)
      }
    })
    .sort((a, b) => b.succeeded - a.succeeded || a.currency.localeCompare(b.currency))

export const paymentDays = (statistics: Statistics, currency: string) => {
  const days = daysOf(statistics)
  const own = statistics.payments.filter((day) => day.currency === currency)
  return {
    received: perDay(days, own, ({ succeeded }) => Number(succeeded.amount)),
    refunded: perDay(days, own, ({ refunded }) => Number(refunded.amount)),
    succeeded: perDay(days, own, ({ succeeded }) => succeeded.count),
    failed: perDay(days, own, ({ failed }) => failed.count)
  }
}

export const deliveryDays = (statistics: Statistics) => {
  const days = daysOf(statistics)
  return {
    delivered: perDay(days, statistics.deliveries, ({ delivered }) => delivered),
    queued: perDay(days, statistics.deliveries, ({ queued }) => queued),
    failed: perDay(days, statistics.deliveries, ({ failed }) => failed)
  }
}

/** The totals of all deliveries. `rate` is the share of ended deliveries that succeeded; null if none has ended. */
export const deliverySums = ({ deliveries }: Pick<Statistics, "deliveries">) => {
  const delivered = deliveries.reduce((sum, day) => sum + day.delivered, 0)
  const failed = deliveries.reduce((sum, day) => sum + day.failed, 0)
  const queued = deliveries.reduce((sum, day) => sum + day.queued, 0)
  return { delivered, failed, queued, rate: delivered + failed === 0 ? null : delivered / (delivered + failed) }
}

export const endpointDays = (statistics: Statistics, id: string) => {
  const own = statistics.endpoints.find((endpoint) => endpoint.id === id)?.days ?? []
  return {
    totals: perDay(daysOf(statistics), own, ({ delivered, failed, queued }) => delivered + failed + queued),
    troubled: perDay(daysOf(statistics), own, ({ failed, queued }) => failed + queued),
    failed: own.reduce((sum, { failed }) => sum + failed, 0),
    waiting: own.reduce((sum, { queued }) => sum + queued, 0)
  }
}

/** The start of the first day of which deliveries to an endpoint still wait. */
export const firstWaitingDay = ({ endpoints }: Pick<Statistics, "endpoints">, id: string): string | undefined => {
  const day = endpoints.find((endpoint) => endpoint.id === id)?.days.find(({ queued }) => queued > 0)?.date
  return day === undefined ? undefined : `${day}T00:00:00.000Z`
}

interface Counted {
  readonly id: string
  readonly recentFailures: number
}

/**
 * Destinations with how many deliveries failed for good in 24 hours and how many wait, the worst first.
 *
 * @param retrying those that wait as far as is known at once; the statistics have all of them a little later
 */
export const byTrouble = <D extends Counted>(
  destinations: ReadonlyArray<D>,
  statistics: Statistics | undefined,
  retrying: ReadonlyMap<string, number> | undefined
) =>
  destinations
    .map((destination) => {
      const counted = statistics === undefined ? 0 : endpointDays(statistics, destination.id).waiting
      return { ...destination, waiting: Math.max(counted, retrying?.get(destination.id) ?? 0) }
    })
    .sort((a, b) => b.recentFailures - a.recentFailures || b.waiting - a.waiting)

/** A success rate that never rounds a failure away: 99.98 % is not shown as 100 %. */
export const rateText = (rate: number): string => {
  if (rate === 1 || rate === 0) return `${rate * 100} %`
  const percent = Math.floor(rate * 1000) / 10
  return `${Math.max(0.1, percent)} %`
}
