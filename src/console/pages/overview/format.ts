import { digitsOf } from "../../components/amounts.ts"

/** Numbers and days of the overview as people write them. Pure. */

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" })
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })

/** A day of UTC, such as `2026-11-23`, in the reader's language: "Nov 23". */
export const dayLabel = (date: string): string => day.format(new Date(`${date}T00:00:00Z`))

/** A number of things. */
export const count = (value: number): string => whole.format(value)

/** The service counts failures no further: so many stands for "so many or more". */
export const mostCounted = 10_000

/** A number of things that were counted up to `mostCounted`. */
export const countedUpTo = (value: number): string => (value < mostCounted ? count(value) : `${count(mostCounted)}+`)

/** An amount of smallest units for an axis, such as "R$1.2K". */
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
