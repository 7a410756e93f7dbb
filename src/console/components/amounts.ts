/** Amounts are integers in the smallest unit: 1500 is R$15.00, ¥1500 or KWD 1.500. Uses no DOM. */

/**
 * The currencies that the provider counts without a fraction, and in thousandths; all others are in hundredths
 * (https://docs.stripe.com/currencies). Not taken from `Intl`, which follows everyday use: there the Albanian lek and
 * the Serbian dinar have no fraction either, and it would show a hundred times the charged amount. The provider counts
 * hundredths of ISK and UGX, although these have no fraction in ISO 4217.
 */
const withoutFraction: ReadonlySet<string> = new Set(
  "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" ")
)
const inThousandths: ReadonlySet<string> = new Set("bhd jod kwd omr tnd".split(" "))

/** The number of digits after the decimal point in this currency: 0, 2 or 3. Ignores the code's case. */
export const digitsOf = (currency: string): 0 | 2 | 3 => {
  const code = currency.toLowerCase()
  if (withoutFraction.has(code)) return 0
  return inThousandths.has(code) ? 3 : 2
}

/** The maximum digits of an amount in its smallest unit, as in the API. */
const maximumDigits = 12

const formats = new Map<string, Intl.NumberFormat>()

/** Whether `Intl` accepts the code; other codes are shown unchanged. */
const isCode = (currency: string): boolean => /^[a-zA-Z]{3}$/.test(currency)

const formatOf = (currency: string, furtherDigits: number): Intl.NumberFormat => {
  const key = `${currency} ${furtherDigits}`
  const made =
    formats.get(key) ??
    new Intl.NumberFormat("en", {
      ...(isCode(currency) ? { style: "currency", currency } : {}),
      minimumFractionDigits: digitsOf(currency),
      maximumFractionDigits: digitsOf(currency) + furtherDigits
    })
  formats.set(key, made)
  return made
}

const withCode = (formatted: string, currency: string): string =>
  isCode(currency) ? formatted : `${formatted} ${currency}`.trim()

/** Converts smallest units to a decimal: `15.00` for 1500 brl. Exact for any size. */
const decimalOf = (amount: bigint, digits: number): `${number}` => {
  const sign = amount < 0n ? "-" : ""
  const all = String(amount < 0n ? -amount : amount).padStart(digits + 1, "0")
  const written = digits === 0 ? all : `${all.slice(0, -digits)}.${all.slice(-digits)}`
  return `${sign}${written}` as `${number}`
}

/** Parses a whole number of smallest units; undefined for anything else, which the provider never sends. */
const wholeOf = (amount: number | bigint | string): bigint | undefined => {
  if (typeof amount === "bigint") return amount
  const text = String(amount)
  return /^-?\d{1,40}$/.test(text) ? BigInt(text) : undefined
}

/**
 * Formats an amount: `R$15.00` for 1500 brl, `¥1,500` for 1500 jpy, `KWD 1.500` for 1500 kwd. Sums too large for a
 * number come as text or bigint and lose no digit.
 */
export const formatAmount = (amount: number | bigint | string, currency: string): string => {
  const whole = wholeOf(amount)
  return whole === undefined
    ? formatDecimalAmount(String(amount), currency)
    : withCode(formatOf(currency, 0).format(decimalOf(whole, digitsOf(currency))), currency)
}

/**
 * Formats an amount given as a decimal of the smallest unit, as prices may have: `R$0.105` for "10.5" brl. Shows all of
 * its digits, up to the provider's twelve.
 */
export const formatDecimalAmount = (decimal: string, currency: string): string => {
  const amount = Number(decimal)
  return Number.isFinite(amount)
    ? withCode(formatOf(currency, 12).format(amount / 10 ** digitsOf(currency)), currency)
    : decimal
}

/** An amount as a field's text: `15.00` for 1500 brl, without a symbol or thousands separators. */
export const amountToText = (amount: number, currency: string): string => decimalOf(BigInt(amount), digitsOf(currency))

/** An example amount in this currency: `1500`, `15.00`, `1.500`. */
const exampleOf = (currency: string): string => amountToText(1500, currency)

/** The result of parsing a field's text: an amount, nothing, or a problem, worded to follow the field's name. */
export type WrittenAmount =
  | { readonly kind: "amount"; readonly amount: number }
  | { readonly kind: "empty" }
  | { readonly kind: "problem"; readonly problem: string }

const problem = (words: string): WrittenAmount => ({ kind: "problem", problem: words })

const form = /^(\d+)(?:([.,])(\d*))?$/

/**
 * Parses a typed or pasted amount. The decimal separator is a point, or a comma before one or two digits. A comma
 * before three digits might separate thousands, so it is refused rather than guessed.
 */
export const readAmount = (text: string, currency: string): WrittenAmount => {
  const written = text.trim()
  if (written === "") return { kind: "empty" }
  const digits = digitsOf(currency)
  // Bounded before the pattern runs; no amount is this long
  const [, whole, sign, fraction = ""] = (written.length <= 40 ? form.exec(written) : null) ?? []
  if (whole === undefined) return problem(`Write it in digits, such as ${exampleOf(currency)}.`)
  if (sign === "," && fraction.length > 2) {
    return problem(`Write it without separators for thousands, such as ${exampleOf(currency)}.`)
  }
  if (digits === 0 && sign !== undefined) {
    return problem(`${currency.toUpperCase()} has no smaller unit: write it without a fraction.`)
  }
  if (fraction.length > digits) return problem(`${currency.toUpperCase()} has ${digits} digits after the point.`)
  const all = `${whole}${fraction.padEnd(digits, "0")}`.replace(/^0+(?=\d)/, "")
  return all.length > maximumDigits ? problem("That is too much.") : { kind: "amount", amount: Number(all) }
}
