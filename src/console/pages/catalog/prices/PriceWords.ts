import { isAt, itemsAt, numberAt, textAt, valueAt } from "../../../api/Reading.ts"
import { formatAmount, formatDecimalAmount } from "../../../components/amounts.ts"

/** Prices in words: the amount, the quantity and the frequency. */

const count = new Intl.NumberFormat("en")

/** `every month`, `every 3 months`; undefined for a one-time price. */
export const everyPeriod = (interval: string | undefined, intervals: number | undefined): string | undefined => {
  if (interval === undefined) return undefined
  return intervals === undefined || intervals === 1
    ? `every ${interval}`
    : `every ${count.format(intervals)} ${interval}s`
}

const periodOf = (price: unknown): string | undefined =>
  everyPeriod(textAt(price, "recurring", "interval"), numberAt(price, "recurring", "interval_count"))

const currencyOf = (price: unknown): string => textAt(price, "currency") ?? ""

/** The amount in a field, or in its `_decimal` variant; undefined without both. */
const amountAt = (object: unknown, field: string, currency: string): string | undefined => {
  const amount = numberAt(object, field)
  if (amount !== undefined) return formatAmount(amount, currency)
  const decimal = textAt(object, `${field}_decimal`)
  return decimal === undefined ? undefined : formatDecimalAmount(decimal, currency)
}

const customWords = (price: unknown): string => {
  const currency = currencyOf(price)
  const minimum = numberAt(price, "custom_unit_amount", "minimum")
  const maximum = numberAt(price, "custom_unit_amount", "maximum")
  const chosen = `The payer chooses the amount in ${currency.toUpperCase()}`
  if (minimum !== undefined && maximum !== undefined) {
    return `${chosen}, ${formatAmount(minimum, currency)} to ${formatAmount(maximum, currency)}`
  }
  if (minimum !== undefined) return `${chosen}, at least ${formatAmount(minimum, currency)}`
  return maximum === undefined ? chosen : `${chosen}, at most ${formatAmount(maximum, currency)}`
}

/** A price's tiers, from the first unit on; empty without tiers. */
export const tiersOf = (price: unknown): ReadonlyArray<{ readonly units: string; readonly costs: string }> => {
  const currency = currencyOf(price)
  const tiers = itemsAt(price, "tiers")
  return tiers.map((tier, index) => {
    const from = index === 0 ? 1 : (numberAt(tiers[index - 1], "up_to") ?? 0) + 1
    const upTo = numberAt(tier, "up_to")
    const unit = amountAt(tier, "unit_amount", currency)
    const flat = amountAt(tier, "flat_amount", currency)
    const hasFlat = flat !== undefined && numberAt(tier, "flat_amount") !== 0
    const parts = [...(unit === undefined ? [] : [`${unit} each`]), ...(hasFlat ? [`${flat} flat`] : [])]
    return {
      units:
        upTo === undefined
          ? `${count.format(from)} and more`
          : from === upTo
            ? count.format(from)
            : `${count.format(from)} to ${count.format(upTo)}`,
      costs: parts.length === 0 ? formatAmount(0, currency) : parts.join(" + ")
    }
  })
}

/** Whether the tier of the whole quantity prices all units, instead of each tier its own. */
export const isVolume = (price: unknown): boolean => textAt(price, "tiers_mode") === "volume"

const tieredWords = (price: unknown): string => {
  const [first] = tiersOf(price)
  const mode = isVolume(price) ? "by volume" : "in tiers"
  return first === undefined ? `Priced ${mode}, in ${currencyOf(price).toUpperCase()}` : `From ${first.costs}, ${mode}`
}

const amountWords = (price: unknown): string => {
  if (valueAt(price, "custom_unit_amount") instanceof Object) return customWords(price)
  if (textAt(price, "billing_scheme") === "tiered") return tieredWords(price)
  const amount = amountAt(price, "unit_amount", currencyOf(price)) ?? `An amount in ${currencyOf(price).toUpperCase()}`
  const units = numberAt(price, "transform_quantity", "divide_by")
  return units === undefined ? amount : `${amount} per ${count.format(units)}`
}

/** A price in words: `R$20.00 every month`, `R$90.00 per 12`, `The payer chooses the amount in BRL`. */
export const priceWords = (price: unknown): string => {
  const amount = amountWords(price)
  const period = periodOf(price)
  if (period === undefined) return amount
  return amount.includes(", ") ? `${amount}, ${period}` : `${amount} ${period}`
}

/** The free days before the first charge; undefined if there are none. */
export const trialWords = (price: unknown): string | undefined => {
  const days = numberAt(price, "recurring", "trial_period_days")
  if (days === undefined || days === 0) return undefined
  return days === 1 ? "1 day free first" : `${count.format(days)} days free first`
}

export const isRecurring = (price: unknown): boolean =>
  textAt(price, "type") === "recurring" || textAt(price, "recurring", "interval") !== undefined

export const priceLabel = (productName: string | undefined, price: unknown): string => {
  const nickname = textAt(price, "nickname")
  return [
    productName ?? textAt(price, "product") ?? "",
    priceWords(price),
    ...(nickname === undefined ? [] : [nickname])
  ]
    .filter((part) => part !== "")
    .join(" · ")
}

export const isActive = (object: unknown): boolean => isAt(object, "active")
