import { Effect } from "effect"
import { maximumCharge, minimumCharge } from "../Amounts.ts"
import type { RequestContext } from "../api/Route.ts"
import { money } from "../Money.ts"
import { invalid, type ProviderError } from "../ProviderError.ts"
import type { Coupon, LineItem, Order, Price, Session, SessionDiscount } from "../Records.ts"
import { activePromotionCode, currentPromotionCode } from "../resources/catalog/PromotionCodes.ts"
import { checkMinimum, checkTotal, dueNow, sumOf } from "../resources/checkout/Sales.ts"
import { discounted, fits, fullPrice } from "./Discounts.ts"

export interface Choices {
  /** The amount in the smallest currency unit, if the price lets the payer choose it. */
  readonly amount: number | undefined
  /** The promotion code to apply; null removes the current one. */
  readonly promotionCode: string | null | undefined
  /** Quantities by the index of their line item, counted from 0; an item with the quantity 0 is removed. */
  readonly quantities: ReadonlyMap<number, number>
  /** The indexes of the items to sell at their upsell price. */
  readonly upsells: ReadonlySet<number>
}

export interface OpenCheckout {
  readonly session: Session
  readonly order: Order
}

type Refusable<A> = Effect.Effect<A, ProviderError>

const resized = (item: LineItem, index: number, quantity: number, trial: boolean): Refusable<LineItem> => {
  const bounds = item.adjustable_quantity
  const param = `quantities[${index}]`
  if (bounds === null || !bounds.enabled) {
    return quantity === item.quantity ? Effect.succeed(item) : invalid(param, "The quantity of this item is fixed.")
  }
  const minimum = bounds.minimum ?? 0
  const maximum = bounds.maximum ?? quantity
  if (quantity < minimum || quantity > maximum) {
    return invalid(param, `The quantity must be between ${minimum} and ${maximum}.`)
  }
  return Effect.succeed({ ...item, quantity, amount_subtotal: dueNow(item.price, quantity, trial) })
}

const withQuantities = (order: Order, quantities: Choices["quantities"]): Refusable<ReadonlyArray<LineItem>> => {
  const unknown = Array.from(quantities.keys()).find((index) => order.items[index] === undefined)
  if (unknown !== undefined) {
    return invalid(`quantities[${unknown}]`, "There is no such item.")
  }
  return Effect.forEach(order.items, (item, index) =>
    resized(item, index, quantities.get(index) ?? item.quantity, isTrial(order))
  ).pipe(
    Effect.map((items) => items.filter(({ quantity }) => quantity > 0)),
    Effect.filterOrFail(
      (items) => items.length > 0,
      () => invalid("quantities", "The last item can't be removed.")
    )
  )
}

const isTrial = ({ subscriptionData }: Order): boolean => subscriptionData.trialPeriodDays !== null

export const upsellOf = ({ objects }: RequestContext, { price }: LineItem): Price | undefined => {
  const offer = objects.get("upsell", price.id)
  return offer === undefined ? undefined : objects.get("price", offer.upsell)
}

const withUpsells = (context: RequestContext, order: Order, upsells: Choices["upsells"]): Refusable<Order> => {
  const items = order.items.map((item, index) => {
    const price = upsells.has(index) ? upsellOf(context, item) : item.price
    return price === undefined
      ? undefined
      : { ...item, price, amount_subtotal: dueNow(price, item.quantity, isTrial(order)) }
  })
  const sold = items.filter((item) => item !== undefined)
  return sold.length === order.items.length && [...upsells].every((index) => index < sold.length)
    ? Effect.succeed(upsells.size === 0 ? order : { ...order, items: sold })
    : invalid("upsells", "No other price is offered in place of this one.")
}

const chosenAmount = (item: LineItem, amount: number | undefined): Refusable<number> => {
  const bounds = item.price.custom_unit_amount
  const chosen = amount ?? bounds?.preset ?? undefined
  if (chosen === undefined) {
    return invalid("amount", "Say how much you want to pay.", "parameter_missing")
  }
  const minimum = Math.max(bounds?.minimum ?? 1, minimumCharge(item.currency))
  const maximum = bounds?.maximum ?? maximumCharge(item.currency)
  return chosen >= minimum && chosen <= maximum
    ? Effect.succeed(chosen)
    : invalid(
        "amount",
        `The amount must be between ${money(minimum, item.currency)} and ${money(maximum, item.currency)}.`
      )
}

const withAmount = (items: ReadonlyArray<LineItem>, amount: number | undefined): Refusable<ReadonlyArray<LineItem>> => {
  const [item] = items
  if (item === undefined || item.price.custom_unit_amount === null) {
    return amount === undefined ? Effect.succeed(items) : invalid("amount", "The amount of this order is fixed.")
  }
  return Effect.map(chosenAmount(item, amount), (chosen) => [{ ...item, amount_subtotal: chosen }])
}

interface Applied {
  readonly coupon: Coupon
  readonly discounts: ReadonlyArray<SessionDiscount>
}

const invalidCode = invalid("promotion_code", "This code is invalid.")

const discountOf = (
  context: RequestContext,
  session: Session,
  items: ReadonlyArray<LineItem>,
  code: Choices["promotionCode"]
): Refusable<Applied | undefined> => {
  const before = session.discounts[0]?.promotion_code
  if (code === null || (code === undefined && before === undefined)) return Effect.succeed(undefined)
  if (session.allow_promotion_codes !== true) return invalidCode
  const known = before === undefined ? undefined : context.objects.get("promotion_code", before)
  const found =
    code !== undefined
      ? activePromotionCode(context, code)
      : known === undefined
        ? undefined
        : currentPromotionCode(context, known)
  const coupon = found?.active === true ? context.objects.get("coupon", found.promotion.coupon) : undefined
  if (found === undefined || coupon === undefined) return invalidCode
  return fits(items, session.currency, coupon)
    ? Effect.succeed({ coupon, discounts: [{ coupon: null, promotion_code: found.id }] })
    : invalid("promotion_code", "This code does not apply to anything in this order.")
}

const priced = (session: Session, items: ReadonlyArray<LineItem>, discounts: Session["discounts"]): Session => ({
  ...session,
  amount_subtotal: sumOf(items, "amount_subtotal"),
  amount_total: sumOf(items, "amount_total"),
  discounts,
  total_details: { amount_discount: sumOf(items, "amount_discount"), amount_shipping: 0, amount_tax: 0 }
})

/** Recalculates the prices. Errors (400), each with the form's field as `param`. */
export const withChoices = Effect.fnUntraced(function* (
  context: RequestContext,
  { order, session }: OpenCheckout,
  choices: Choices
) {
  const offered = yield* withUpsells(context, order, choices.upsells)
  const resizedItems = yield* withQuantities(offered, choices.quantities)
  const items = yield* withAmount(resizedItems, choices.amount)
  yield* checkTotal(fullPrice(items), "quantities")
  const applied = yield* discountOf(context, session, items, choices.promotionCode)
  const sold = applied === undefined ? fullPrice(items) : discounted(items, applied.coupon)
  if (session.mode === "payment") yield* checkMinimum(sold, applied === undefined ? "quantities" : "promotion_code")
  const chosen: OpenCheckout = {
    order: { ...order, items: sold },
    session: priced(session, sold, applied?.discounts ?? [])
  }
  context.objects.put("order", session.id, chosen.order)
  context.objects.put("checkout.session", session.id, chosen.session)
  return chosen
})

const redeemedBy = ({ objects }: RequestContext, { discounts: [discount] }: Session) => {
  const code = discount === undefined ? undefined : objects.get("promotion_code", discount.promotion_code)
  return { code, coupon: code === undefined ? undefined : objects.get("coupon", code.promotion.coupon) }
}

export const couponOf = (context: RequestContext, session: Session): Coupon | undefined =>
  redeemedBy(context, session).coupon

/** Counts one redemption of a session's code and coupon; the last allowed redemption deactivates them. */
export const redeem = (context: RequestContext, session: Session): void => {
  const { code, coupon } = redeemedBy(context, session)
  if (code === undefined || coupon === undefined) return
  const codeUses = code.times_redeemed + 1
  const couponUses = coupon.times_redeemed + 1
  context.objects.put("promotion_code", code.id, {
    ...code,
    active: code.active && codeUses !== code.max_redemptions,
    times_redeemed: codeUses
  })
  context.objects.put("coupon", coupon.id, {
    ...coupon,
    times_redeemed: couponUses,
    valid: coupon.valid && couponUses !== coupon.max_redemptions
  })
}
