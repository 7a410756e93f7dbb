import { digitsOf } from "../../components/amounts.ts"

/** Formats the overview's numbers and days. Pure. */

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" })
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })

/** A UTC day, such as `2026-11-23`, in the reader's language: "Nov 23". */
export const dayLabel = (date: string): string => day.format(new Date(`${date}T00:00:00Z`))

export const count = (value: number): string => whole.format(value)

/** The service stops counting failures here, so this number means "10,000 or more". */
export const mostCounted = 10_000

/** Formats a count that is capped at `mostCounted`. */
export const countedUpTo = (value: number): string => (value < mostCounted ? count(value) : `${count(mostCounted)}+`)

/** An amount in the smallest unit, for an axis, such as "R$1.2K". */
export const compactMoney = (amount: number, currency: string): string => {
  const code = currency.toUpperCase()
  if (!/^[A-Z]{3}$/.test(code)) return whole.format(amount)
  return new Intl.NumberFormat(undefined, {
    style: "currency",
    currency: code,
    notation: "compact",
    minimumFractionDigits: 0,
    maximumFractionDigits: 1
  }).format(amount / 10 ** digitsOf(currency))
}
