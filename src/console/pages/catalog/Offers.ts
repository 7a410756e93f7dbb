import { type AnswerOf, call } from "../../api/Call.ts"
import { priceLabel } from "./PriceWords.ts"

/** What can be sold: active prices of active products, with the names of the products. */

export type Price = AnswerOf<"prices", "get">
export type Product = AnswerOf<"products", "get">

export interface Offer {
  readonly id: string
  readonly price: Price
  /** The product with the amount, as people choose it. */
  readonly label: string
}

/** At most so many prices and products are offered to choose from; any other price is named by its id. */
const pageSize = 100
const mostPages = 5

interface PageOf<A> {
  readonly data: ReadonlyArray<A>
  readonly has_more: boolean
}

/** The first pages of a list, one after the other. */
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

/** The active products, newest first. */
export const readProducts = (
  signal: AbortSignal
): Promise<{ readonly items: ReadonlyArray<Product>; readonly hasMore: boolean }> =>
  firstPages((after) =>
    call("products", "list", { urlParams: { active: true, limit: pageSize, ...after } }, { signal })
  )

/** What can be sold, by the names of the products; `hasMore` if there is more than fits into a list. */
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
    // A price of a product that was taken off sale can't be sold either
    .filter(({ product }) => products.hasMore || (typeof product === "string" && names.has(product)))
    .map((price) => ({
      id: price.id,
      price,
      label: priceLabel(typeof price.product === "string" ? names.get(price.product) : undefined, price)
    }))
    .toSorted((one, other) => one.label.localeCompare(other.label, "en"))
  return { offers, hasMore: prices.hasMore }
}

/** A price that is named by its id, with its product's name. */
export const readOffer = async (id: string, signal: AbortSignal): Promise<Offer> => {
  const price = await call("prices", "get", { path: { id } }, { signal })
  const product =
    typeof price.product === "string"
      ? await call("products", "get", { path: { id: price.product } }, { signal })
      : undefined
  return { id, price, label: priceLabel(product?.name ?? undefined, price) }
}
