import type { Coupon, LineItem } from "../Records.ts"

/** Four decimal places, the most that a percentage can have. */
const scale = 10_000

const isEligible = (item: LineItem, coupon: Coupon): boolean =>
  coupon.applies_to === undefined || coupon.applies_to.products.includes(item.price.product)

/** The discount of each item by a percentage, halves rounded up. */
const percentages = (items: ReadonlyArray<LineItem>, percent: number): ReadonlyArray<number> =>
  items.map(({ amount_subtotal }) => Math.round((amount_subtotal * Math.round(percent * scale)) / (100 * scale)))

/** Spreads a fixed amount over the items in proportion to their amounts, exactly, up to their total. */
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

export const fullPrice = (items: ReadonlyArray<LineItem>): ReadonlyArray<LineItem> =>
  items.map((item) => ({ ...item, amount_discount: 0, amount_total: item.amount_subtotal }))

/** A percentage off each, or a fixed amount spread over them; never negative. */
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

export const fits = (items: ReadonlyArray<LineItem>, currency: string, coupon: Coupon): boolean =>
  (coupon.amount_off === null || coupon.currency === currency) && items.some((item) => isEligible(item, coupon))
