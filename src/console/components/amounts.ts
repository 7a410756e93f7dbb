/**
 * Amounts as people read and write them. Amounts are integers in the smallest unit that the provider counts in: 1500 is
 * R$15.00, ¥1500 or KWD 1.500. No DOM, so that it can be tested without a browser.
 */

/**
 * The currencies that the provider counts without a fraction, and those that it counts in thousandths; all others are
 * counted in hundredths (https://docs.stripe.com/currencies). Not left to `Intl`: it follows everyday use, in which the
 * Albanian lek and the Serbian dinar have no fraction either, and would show a hundred times what is charged. The
 * provider counts hundredths of ISK and UGX, although these have no fraction in ISO 4217.
 */
const withoutFraction: ReadonlySet<string> = new Set(
  "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" ")
)
const inThousandths: ReadonlySet<string> = new Set("bhd jod kwd omr tnd".split(" "))

/** How many digits an amount in this currency has after the decimal point: 0, 2 or 3. The code's case does not matter. */
export const digitsOf = (currency: string): 0 | 2 | 3 => {
  const code = currency.toLowerCase()
  if (withoutFraction.has(code)) return 0
  return inThousandths.has(code) ? 3 : 2
}

/** The most digits of an amount in its smallest unit, as the API accepts it. */
const maximumDigits = 12

const formats = new Map<string, Intl.NumberFormat>()

/** Whether `Intl` accepts the code; one that it refuses is shown as it is. */
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

/** A whole number of smallest units as a decimal number: `15.00` for 1500 brl. Exact, however large it is. */
const decimalOf = (amount: bigint, digits: number): `${number}` => {
  const sign = amount < 0n ? "-" : ""
  const all = String(amount < 0n ? -amount : amount).padStart(digits + 1, "0")
  const written = digits === 0 ? all : `${all.slice(0, -digits)}.${all.slice(-digits)}`
  return `${sign}${written}` as `${number}`
}

/** Reads a whole number of smallest units; undefined if it is none, which the provider never sends. */
const wholeOf = (amount: number | bigint | string): bigint | undefined => {
  if (typeof amount === "bigint") return amount
  const text = String(amount)
  return /^-?\d{1,40}$/.test(text) ? BigInt(text) : undefined
}

/**
 * A readable amount: `R$15.00` for 1500 brl, `¥1,500` for 1500 jpy, `KWD 1.500` for 1500 kwd. Sums that are too large for a
 * number come as text or as a bigint, and lose no digit.
 */
export const formatAmount = (amount: number | bigint | string, currency: string): string => {
  const whole = wholeOf(amount)
  return whole === undefined
    ? formatDecimalAmount(String(amount), currency)
    : withCode(formatOf(currency, 0).format(decimalOf(whole, digitsOf(currency))), currency)
}

/**
 * A readable amount given as a decimal of the smallest unit, which prices may have: `R$0.105` for "10.5" brl. Shows as
 * many digits as it has, up to the provider's twelve.
 */
export const formatDecimalAmount = (decimal: string, currency: string): string => {
  const amount = Number(decimal)
  return Number.isFinite(amount)
    ? withCode(formatOf(currency, 12).format(amount / 10 ** digitsOf(currency)), currency)
    : decimal
}

/** An amount as it is written into a field: `15.00` for 1500 brl, without a symbol and without thousands separators. */
export const amountToText = (amount: number, currency: string): string => decimalOf(BigInt(amount), digitsOf(currency))

/** An example of how an amount in this currency is written: `1500`, `15.00`, `1.500`. */
const exampleOf = (currency: string): string => amountToText(1500, currency)

/** What a field's text means: an amount, nothing at all, or a problem in words that follow the field's name. */
export type WrittenAmount =
  | { readonly kind: "amount"; readonly amount: number }
  | { readonly kind: "empty" }
  | { readonly kind: "problem"; readonly problem: string }

const problem = (words: string): WrittenAmount => ({ kind: "problem", problem: words })

const form = /^(\d+)(?:([.,])(\d*))?$/

/**
 * Reads an amount that was typed or pasted. Takes a point, or a comma before one or two digits, as the decimal sign; a
 * comma before three digits could just as well separate thousands, so it is refused rather than guessed.
 */
export const readAmount = (text: string, currency: string): WrittenAmount => {
  const written = text.trim()
  if (written === "") return { kind: "empty" }
  const digits = digitsOf(currency)
  // Bounded before the pattern runs; no amount needs as much
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
