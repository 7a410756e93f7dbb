import type { Price } from "../Records.ts"

const day = 24 * 60 * 60

/** A moment this many months later, in Unix seconds: at the same time (UTC) of the same day, or of the month's last. */
export const addMonths = (moment: number, months: number): number => {
  const date = new Date(moment * 1_000)
  const month = date.getUTCMonth() + months
  const last = new Date(Date.UTC(date.getUTCFullYear(), month + 1, 0)).getUTCDate()
  date.setUTCMonth(month, Math.min(date.getUTCDate(), last))
  return Math.floor(date.getTime() / 1_000)
}

export const addDays = (moment: number, days: number): number => moment + days * day

/** How many months one moment's month is after another's (UTC). */
const monthsBetween = (earlier: number, later: number): number => {
  const [from, to] = [new Date(earlier * 1_000), new Date(later * 1_000)]
  return 12 * (to.getUTCFullYear() - from.getUTCFullYear()) + to.getUTCMonth() - from.getUTCMonth()
}

/**
 * The end of a period that begins at a moment, in Unix seconds, for a subscription with this anchor. Months and years
 * are counted from the anchor, so that after a short month the day is the anchor's again.
 */
export const periodEnd = (
  anchor: number,
  start: number,
  { interval, interval_count: count }: NonNullable<Price["recurring"]>
): number => {
  switch (interval) {
    case "day":
      return addDays(start, count)
    case "week":
      return addDays(start, 7 * count)
    case "year":
      return addMonths(anchor, monthsBetween(anchor, start) + 12 * count)
    default:
      return addMonths(anchor, monthsBetween(anchor, start) + count)
  }
}
