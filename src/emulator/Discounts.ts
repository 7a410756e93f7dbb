import type { Coupon, LineItem } from "./Records.ts"

/** Four decimal places, as many as a percentage can have. */
const scale = 10_000

const isEligible = (item: LineItem, coupon: Coupon): boolean =>
  coupon.applies_to === undefined || coupon.applies_to.products.includes(item.price.product)

/** The discount of each item by a percentage, halves rounded up. */
const percentages = (items: ReadonlyArray<LineItem>, percent: number): ReadonlyArray<number> =>
  items.map(({ amount_subtotal }) => Math.round((amount_subtotal * Math.round(percent * scale)) / (100 * scale)))

/** A fixed amount spread over the items in proportion to their amounts, exactly; no more than they cost in all. */
const spread = (items: ReadonlyArray<LineItem>, amount: number): ReadonlyArray<number> => {
  let cost = items.reduce((sum, item) => sum + item.amount_subtotal, 0)
  let left = Math.min(amount, cost)
  return items.map(({ amount_subtotal }) => {
    const share = cost === 0 ? 0 : Math.round((left * amount_subtotal) / cost)
    cost -= amount_subtotal
    left -= share
    return share
  })
}

/** Items without any discount. */
export const fullPrice = (items: ReadonlyArray<LineItem>): ReadonlyArray<LineItem> =>
  items.map((item) => ({ ...item, amount_discount: 0, amount_total: item.amount_subtotal }))

/**
 * The items with a coupon's discount: a percentage off each, or a fixed amount spread over them; items whose product
 * the coupon does not apply to keep their price. Amounts are in the smallest currency unit, and none falls below 0.
 */
export const discounted = (items: ReadonlyArray<LineItem>, coupon: Coupon): ReadonlyArray<LineItem> => {
  const eligible = items.filter((item) => isEligible(item, coupon))
  const off =
    coupon.percent_off === null ? spread(eligible, coupon.amount_off ?? 0) : percentages(eligible, coupon.percent_off)
  return fullPrice(items).map((item) => {
    const index = eligible.findIndex(({ id }) => id === item.id)
    const amount = off[index] ?? 0
    return { ...item, amount_discount: amount, amount_total: item.amount_subtotal - amount }
  })
}

/** Whether a coupon lowers the price of any of the items: a fixed amount must be in the same currency. */
export const fits = (items: ReadonlyArray<LineItem>, currency: string, coupon: Coupon): boolean =>
  (coupon.amount_off === null || coupon.currency === currency) && items.some((item) => isEligible(item, coupon))
