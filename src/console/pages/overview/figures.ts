import type { AnswerOf } from "../../api/Types.ts"

/** The statistics as series of days for pictures, and their sums. Days are those of UTC. Pure. */

export type Statistics = AnswerOf<"statistics", "get">

const dayMillis = 24 * 60 * 60 * 1000

/** At most this many days are drawn, whatever an answer says. */
const maxDays = 400

/** Every day from the first to the last, as `2026-11-23`. */
export const daysOf = ({ from, until }: Pick<Statistics, "from" | "until">): ReadonlyArray<string> => {
  const first = Date.parse(`${from}T00:00:00Z`)
  const last = Date.parse(`${until}T00:00:00Z`)
  if (!(last >= first)) return []
  const count = Math.min(maxDays, Math.round((last - first) / dayMillis) + 1)
  return Array.from({ length: count }, (_, day) => new Date(first + day * dayMillis).toISOString().slice(0, 10))
}

/** One value per day from entries that only some days have. */
const perDay = <Entry extends { readonly date: string }>(
  days: ReadonlyArray<string>,
  entries: ReadonlyArray<Entry>,
  valueOf: (entry: Entry) => number
): ReadonlyArray<number> => {
  const byDay = new Map<string, number>()
  for (const entry of entries) byDay.set(entry.date, (byDay.get(entry.date) ?? 0) + valueOf(entry))
  return days.map((day) => byDay.get(day) ?? 0)
}

/** A sum of amounts, which may be beyond what a number holds exactly. */
const sumOf = (amounts: ReadonlyArray<string>): bigint => amounts.reduce((sum, amount) => sum + BigInt(amount), 0n)

/** What a currency's payments came to. Amounts are in its smallest unit. */
export interface CurrencyFigures {
  readonly currency: string
  readonly received: bigint
  readonly refunded: bigint
  /** How many refunds did not reach the payer, and how much they were. */
  readonly refundsFailed: number
  readonly refundFailed: bigint
  readonly succeeded: number
  readonly failed: number
}

/** The currencies that have something, those with the most payments first. */
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

/** All deliveries day by day, by their outcome. */
export const deliveryDays = (statistics: Statistics) => {
  const days = daysOf(statistics)
  return {
    delivered: perDay(days, statistics.deliveries, ({ delivered }) => delivered),
    queued: perDay(days, statistics.deliveries, ({ queued }) => queued),
    failed: perDay(days, statistics.deliveries, ({ failed }) => failed)
  }
}

/** What all deliveries came to. `rate` is the share of those that ended which were delivered, null if none has ended. */
export const deliverySums = ({ deliveries }: Pick<Statistics, "deliveries">) => {
  const delivered = deliveries.reduce((sum, day) => sum + day.delivered, 0)
  const failed = deliveries.reduce((sum, day) => sum + day.failed, 0)
  const queued = deliveries.reduce((sum, day) => sum + day.queued, 0)
  return { delivered, failed, queued, rate: delivered + failed === 0 ? null : delivered / (delivered + failed) }
}

/** A destination's deliveries day by day, and how many of them failed. */
export const endpointDays = (statistics: Statistics, id: string) => {
  const own = statistics.endpoints.find((endpoint) => endpoint.id === id)?.days ?? []
  return {
    totals: perDay(daysOf(statistics), own, ({ delivered, failed, queued }) => delivered + failed + queued),
    failed: own.reduce((sum, { failed }) => sum + failed, 0)
  }
}

/** A share in words that never rounds a failure away: 99.98 % is not 100 %. */
export const rateText = (rate: number): string => {
  if (rate === 1 || rate === 0) return `${rate * 100} %`
  const percent = Math.floor(rate * 1000) / 10
  return `${Math.max(0.1, percent)} %`
}
