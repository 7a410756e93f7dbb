/**
 * Formats and parses amounts as on the provider's pages. The provider counts most currencies in hundredths, even those
 * without a fraction in everyday use, such as HUF and IDR, for which `Intl` would show a hundred times as much.
 */

const withoutFraction: ReadonlySet<string> = new Set(
  "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" ")
)
const inThousandths: ReadonlySet<string> = new Set("bhd jod kwd omr tnd".split(" "))

export const digitsOf = (currency: string): 0 | 2 | 3 => {
  if (withoutFraction.has(currency)) return 0
  return inThousandths.has(currency) ? 3 : 2
}

/** A readable amount: `R$5.00` for 500 brl. */
export const money = (amount: number, currency: string): string => {
  const digits = digitsOf(currency)
  return new Intl.NumberFormat("en", {
    style: "currency",
    currency: currency.toUpperCase(),
    minimumFractionDigits: digits,
    maximumFractionDigits: digits
  }).format(amount / 10 ** digits)
}

/** An amount as a field's text: `5.00` for 500 brl. */
export const amountText = (amount: number, currency: string): string => {
  const digits = digitsOf(currency)
  return (amount / 10 ** digits).toFixed(digits)
}

export const amountForm = /^\d{1,12}(?:[.,]\d{1,3})?$/

/** Parses a payer's amount to the smallest unit; undefined if it has more decimals than the currency. */
export const amountIn = (text: string, currency: string): number | undefined => {
  const [whole = "", fraction = ""] = text.split(/[.,]/)
  const digits = digitsOf(currency)
  return fraction.length > digits ? undefined : Number(`${whole}${fraction.padEnd(digits, "0")}`)
}
