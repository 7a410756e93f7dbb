import type { Price, PriceTier } from "./Records.ts"

const places = 12
const one = 10n ** BigInt(places)

/** The largest amount of anything, in the smallest currency unit: the provider allows twelve digits. */
export const maximumAmount = 999_999_999_999

/** The largest amount that a payer can be charged: twelve digits in IDR, eight in every other currency. */
export const maximumCharge = (currency: string): number => (currency === "idr" ? maximumAmount : 99_999_999)

/** The smallest charge if the account is paid out in the same currency, in the smallest currency unit. */
const leastCharges: ReadonlyMap<string, number> = new Map([
  ...["aud", "brl", "cad", "chf", "eur", "inr", "jpy", "nzd", "sgd", "usd"].map((currency) => [currency, 50] as const),
  ["gbp", 30],
  ["bgn", 100],
  ...["aed", "myr", "pln", "ron"].map((currency) => [currency, 200] as const),
  ["dkk", 250],
  ...["nok", "sek"].map((currency) => [currency, 300] as const),
  ["hkd", 400],
  ...["mxn", "thb"].map((currency) => [currency, 1000] as const),
  ["czk", 1500],
  ["huf", 17_500]
])

/**
 * The smallest amount that a payer can be charged. The provider converts it to other currencies at rates that the
 * emulator does not have, so there any amount is accepted.
 */
export const minimumCharge = (currency: string): number => leastCharges.get(currency) ?? 0

/** Three-decimal currencies, whose last digit is always 0, and those without decimals that are written with two. */
const steps: ReadonlyMap<string, number> = new Map([
  ...["bhd", "jod", "kwd", "omr", "tnd"].map((currency) => [currency, 10] as const),
  ...["isk", "ugx"].map((currency) => [currency, 100] as const)
])

/** The amounts of a currency are multiples of this, in its smallest unit. */
export const amountStep = (currency: string): number => steps.get(currency) ?? 1

/** A decimal as an integer count of the smallest fraction that the provider allows, so that no digit is lost. */
const scaled = (decimal: string): bigint => {
  const [whole = "0", fraction = ""] = decimal.split(".")
  return BigInt(whole) * one + BigInt(fraction.padEnd(places, "0"))
}

const rounded = (amount: bigint): number => Number((amount + one / 2n) / one)

/** Removes needless zeros: `"10.50"` becomes `"10.5"`, `"3.0"` becomes `"3"`. */
const normalizedDecimal = (decimal: string): string => {
  const [whole = "0", fraction = ""] = decimal.split(".")
  const shortWhole = whole.replace(/^0+(?=\d)/, "")
  const shortFraction = fraction.replace(/0+$/, "")
  return shortFraction === "" ? shortWhole : `${shortWhole}.${shortFraction}`
}

/** The two forms of one amount: the integer is null if the decimal has a fraction. */
export interface AmountForms {
  readonly integer: number | null
  readonly decimal: string | null
}

/** Both forms of an amount given as an integer or as a decimal; both are null if neither is given. */
export const amountForms = (integer: number | undefined, decimal: string | undefined): AmountForms => {
  if (integer !== undefined) return { integer, decimal: String(integer) }
  if (decimal === undefined) return { integer: null, decimal: null }
  const normalized = normalizedDecimal(decimal)
  return { integer: normalized.includes(".") ? null : Number(normalized), decimal: normalized }
}

const tierAmount = (tier: PriceTier, units: bigint): bigint =>
  units * scaled(tier.unit_amount_decimal ?? "0") + scaled(tier.flat_amount_decimal ?? "0")

const upperBound = (tier: PriceTier): bigint | undefined => (tier.up_to === null ? undefined : BigInt(tier.up_to))

/** Each tier prices the units that fall into it. */
const graduatedAmount = (tiers: ReadonlyArray<PriceTier>, quantity: bigint): bigint => {
  let total = 0n
  let below = 0n
  for (const tier of tiers) {
    if (quantity <= below) break
    const bound = upperBound(tier)
    const until = bound === undefined || quantity < bound ? quantity : bound
    total += tierAmount(tier, until - below)
    below = until
  }
  return total
}

/** The tier that the quantity falls into prices all units. */
const volumeAmount = (tiers: ReadonlyArray<PriceTier>, quantity: bigint): bigint => {
  const tier = tiers.find((candidate) => quantity <= (upperBound(candidate) ?? quantity))
  return tier === undefined ? 0n : tierAmount(tier, quantity)
}

const packages = (quantity: bigint, transform: Price["transform_quantity"]): bigint => {
  if (transform === null) return quantity
  const divisor = BigInt(transform.divide_by)
  return transform.round === "up" ? (quantity + divisor - 1n) / divisor : quantity / divisor
}

/** Per unit, per package or by tiers; a price whose amount the payer chooses costs its preset, or 0. */
export const lineAmount = (price: Price, quantity: number): number => {
  if (price.custom_unit_amount !== null) return price.custom_unit_amount.preset ?? 0
  const units = BigInt(quantity)
  if (price.billing_scheme === "tiered") {
    const tiers = price.tiers ?? []
    return rounded(price.tiers_mode === "volume" ? volumeAmount(tiers, units) : graduatedAmount(tiers, units))
  }
  return rounded(packages(units, price.transform_quantity) * scaled(price.unit_amount_decimal ?? "0"))
}
