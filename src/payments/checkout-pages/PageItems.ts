import { Effect, Predicate } from "effect"
import { refusal } from "../../platform/bounds/Refusals.ts"
import { ValidationFailed } from "../../platform/errors/Errors.ts"
import { Provider } from "../Provider.ts"
import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import { requestRefused } from "../RefusalReasons.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { CheckoutPageItem, CreateCheckoutPage } from "./Api.ts"

/** A page's items, read at the provider when they are set, so that showing a page makes no calls. */

type NewItems = CreateCheckoutPage["items"]

interface Offer {
  readonly price: ProviderObject
  readonly product: ProviderObject
}

const textOf = (object: ProviderObject, field: string): string => {
  const value = object[field]
  return typeof value === "string" ? value : ""
}

const recurringOf = ({ recurring }: ProviderObject): CheckoutPageItem["recurring"] =>
  Predicate.isRecord(recurring)
    ? {
        interval: typeof recurring["interval"] === "string" ? recurring["interval"] : "",
        intervalCount: typeof recurring["interval_count"] === "number" ? recurring["interval_count"] : 1
      }
    : null

/** The unit price; null if tiers, packages or the payer determine it. */
const unitAmountOf = (price: ProviderObject): number | null => {
  const amount = price["unit_amount"]
  const perUnit = price["billing_scheme"] === "per_unit" && !Predicate.isRecord(price["transform_quantity"])
  return perUnit && typeof amount === "number" && Number.isSafeInteger(amount) ? amount : null
}

const itemOf = ({ adjustableQuantity, price, quantity }: NewItems[number], offer: Offer): CheckoutPageItem => ({
  price,
  quantity,
  adjustableQuantity: adjustableQuantity ?? null,
  product: textOf(offer.product, "id"),
  name: textOf(offer.product, "name"),
  currency: textOf(offer.price, "currency"),
  unitAmount: unitAmountOf(offer.price),
  recurring: recurringOf(offer.price)
})

const periodOf = ({ recurring }: CheckoutPageItem): string | null =>
  recurring === null ? null : `${recurring.intervalCount} ${recurring.interval}`

/** The reason why an item can't be sold on a page with the others; undefined if it can. */
const reasonAgainst = (
  item: CheckoutPageItem,
  { price, product }: Offer,
  items: ReadonlyArray<CheckoutPageItem>
): string | undefined => {
  if (price["active"] === false) return "names a price that is inactive; activate it first"
  if (product["active"] === false) return "names a price of a product that is inactive; activate the product first"
  if (item.currency !== items[0]?.currency) return "must be in the currency of the other items"
  const periods = new Set(items.map(periodOf).filter((period) => period !== null))
  if (item.recurring !== null && periods.size > 1) return "must have the billing interval of the other recurring prices"
  const payerDecides = Predicate.isRecord(price["custom_unit_amount"])
  return payerDecides && (items.length > 1 || item.quantity !== 1 || item.adjustableQuantity !== null)
    ? "lets the payer choose the amount: it must be the only item, once"
    : undefined
}

/** Reads the prices and products of items; an unknown price is refused as `items.<n>.price`. */
export const makePageItems = Effect.map(Provider, (provider) => {
  const offerOf = (account: ConnectedAccount, price: string, index: number): ProviderCall<Offer> =>
    Effect.gen(function* () {
      const found = yield* provider.retrievePrice(account, price)
      return { price: found, product: yield* provider.retrieveProduct(account, textOf(found, "product")) }
    }).pipe(
      Effect.mapError((failure) =>
        failure._tag === "ProviderObjectNotFound"
          ? requestRefused({ code: failure.code, fields: [`items.${index}.price`], cause: failure.cause })
          : failure
      )
    )

  return {
    offersOf: (account: ConnectedAccount, items: NewItems): ProviderCall<ReadonlyArray<Offer>> =>
      Effect.forEach(items, ({ price }, index) => offerOf(account, price, index), { concurrency: 5 }),

    /** Returns the items as the page shows them; refuses items that can't be sold, or not together. */
    itemsOf: (
      items: NewItems,
      offers: ReadonlyArray<Offer>
    ): Effect.Effect<ReadonlyArray<CheckoutPageItem>, ValidationFailed> => {
      const pairs = items.flatMap((item, index) => {
        const offer = offers[index]
        return offer === undefined ? [] : [{ item: itemOf(item, offer), offer }]
      })
      const made = pairs.map(({ item }) => item)
      const reasons = pairs.flatMap(({ item, offer }, index) => {
        const reason = reasonAgainst(item, offer, made)
        return reason === undefined ? [] : [[`items.${index}.price`, reason] as const]
      })
      return reasons.length === 0 ? Effect.succeed(made) : new ValidationFailed(refusal(new Map(reasons)))
    }
  }
})
