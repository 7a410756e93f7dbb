import type { Price } from "../Records.ts"

const day = 24 * 60 * 60

/** A moment this many months later, in Unix seconds: at the same time (UTC) of the same day, or of the month's last. */
export const addMonths = (moment: number, months: number): number => {
  const from = new Date(moment * 1_000)
  const first = new Date(from)
  first.setUTCDate(1)
  first.setUTCMonth(first.getUTCMonth() + months)
  const last = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate()
  first.setUTCDate(Math.min(from.getUTCDate(), last))
  return Math.floor(first.getTime() / 1_000)
}

export const addDays = (moment: number, days: number): number => moment + days * day

export const periodEnd = (
  start: number,
  { interval, interval_count: count }: NonNullable<Price["recurring"]>
): number => {
  switch (interval) {
    case "day":
      return addDays(start, count)
    case "week":
      return addDays(start, 7 * count)
    case "year":
      return addMonths(start, 12 * count)
    default:
      return addMonths(start, count)
  }
}

/** How many months one moment's month is after another's (UTC). */
const monthsBetween = (earlier: number, later: number): number => {
  const [from, to] = [new Date(earlier * 1_000), new Date(later * 1_000)]
  return 12 * (to.getUTCFullYear() - from.getUTCFullYear()) + to.getUTCMonth() - from.getUTCMonth()
}

/**
 * The end of a period that begins at a moment, in Unix seconds, for a subscription with this anchor. Months and years
 * are counted from the anchor, so that after a short month the day is the anchor's again.
 */
export const nextPeriodEnd = (anchor: number, start: number, recurring: NonNullable<Price["recurring"]>): number => {
  const { interval, interval_count: count } = recurring
  return interval === "month" || interval === "year"
    ? addMonths(anchor, monthsBetween(anchor, start) + (interval === "year" ? 12 : 1) * count)
    : periodEnd(start, recurring)
}
