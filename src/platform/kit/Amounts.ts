/**
 * The currencies that the provider counts without a fraction, and in thousandths; all others in hundredths
 * (https://docs.stripe.com/currencies). `Intl` follows everyday use, in which HUF and IDR have no fraction either.
 */
const withoutFraction: ReadonlySet<string> = new Set(
  "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" ")
)
const inThousandths: ReadonlySet<string> = new Set("bhd jod kwd omr tnd".split(" "))

const digitsOf = (currency: string): number => (withoutFraction.has(currency) ? 0 : inThousandths.has(currency) ? 3 : 2)

/** A readable amount: `R$15.00` for 1500 brl. */
export const formatAmount = (amount: number, currency: string): string => {
  const digits = digitsOf(currency)
  return new Intl.NumberFormat("en", {
    style: "currency",
    currency: currency.toUpperCase(),
    minimumFractionDigits: digits,
    maximumFractionDigits: digits
  }).format(amount / 10 ** digits)
}
