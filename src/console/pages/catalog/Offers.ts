import { type AnswerOf, call } from "../../api/Call.ts"
import type { PageOf } from "../../state/Query.ts"
import { priceLabel } from "./prices/PriceWords.ts"

export type Price = AnswerOf<"prices", "get">
export type Product = AnswerOf<"products", "get">

export interface Offer {
  readonly id: string
  readonly price: Price
  readonly label: string
}

/** At most `pageSize` times `mostPages` prices and products are listed; any other price is chosen by its id. */
const pageSize = 100
const mostPages = 5

/** Reads the first pages of a list, one after the other. */
const firstPages = async <A extends { readonly id: string }>(
  load: (after: { readonly starting_after?: string }) => Promise<PageOf<A>>
): Promise<{ readonly items: ReadonlyArray<A>; readonly hasMore: boolean }> => {
  const items: Array<A> = []
  for (let page = 0; page < mostPages; page += 1) {
    const last = items.at(-1)
    const { data, has_more } = await load(last === undefined ? {} : { starting_after: last.id })
    items.push(...data)
    if (!has_more || data.length === 0) return { items, hasMore: false }
  }
  return { items, hasMore: true }
}

export const readProducts = (
  signal: AbortSignal
): Promise<{ readonly items: ReadonlyArray<Product>; readonly hasMore: boolean }> =>
  firstPages((after) =>
    call("products", "list", { urlParams: { active: true, limit: pageSize, ...after } }, { signal })
  )

/** Reads the offers for sale, sorted by product name; `hasMore` if the list is truncated. */
export const readOffers = async (
  signal: AbortSignal
): Promise<{ readonly offers: ReadonlyArray<Offer>; readonly hasMore: boolean }> => {
  const [products, prices] = await Promise.all([
    readProducts(signal),
    firstPages((after) =>
      call("prices", "list", { urlParams: { active: true, limit: pageSize, ...after } }, { signal })
    )
  ])
  const names = new Map(products.items.map((product) => [product.id, product.name ?? product.id]))
  const offers = prices.items
    // A price of an inactive product can't be sold either, but a truncated product list does not tell
    .filter(({ product }) => products.hasMore || (typeof product === "string" && names.has(product)))
    .map((price) => ({
      id: price.id,
      price,
      label: priceLabel(typeof price.product === "string" ? names.get(price.product) : undefined, price)
    }))
    .toSorted((one, other) => one.label.localeCompare(other.label, "en"))
  return { offers, hasMore: prices.hasMore }
}

export const readOffer = async (id: string, signal: AbortSignal): Promise<Offer> => {
  const price = await call("prices", "get", { path: { id } }, { signal })
  const product =
    typeof price.product === "string"
      ? await call("products", "get", { path: { id: price.product } }, { signal })
      : undefined
  return { id, price, label: priceLabel(product?.name ?? undefined, price) }
}
