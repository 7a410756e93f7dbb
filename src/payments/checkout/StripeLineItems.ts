import { Effect } from "effect"
import type Stripe from "stripe"
import type { SoldItems } from "../../events/stripe/Translate.ts"
import { ProviderUnavailable } from "../../platform/errors/Errors.ts"
import type { ProviderCall } from "../ProviderCall.ts"
import { isRefusal } from "../ProviderErrors.ts"

const unique = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(ids)]

/** The prices and products that lines sell. A line with a quantity of 0 sells nothing. */
export const soldItemsOf = (items: ReadonlyArray<Stripe.LineItem>): SoldItems => {
  const prices = items.flatMap(({ price, quantity }) => (price === null || quantity === 0 ? [] : [price]))
  return {
    priceIds: unique(prices.map((price) => price.id)),
    productIds: unique(prices.map(({ product }) => (typeof product === "string" ? product : product.id)))
  }
}

/** A page that holds every line: new sessions have at most 100, payment links 20. */
export const everyLine = { limit: 100 } as const

/**
 * Returns all lines of an object. Stripe expands only the first ten; if there are more, all are requested. If that is
 * refused, the object was created or changed all the same, so the outcome is reported as open until a repeat.
 */
export const allLines = (
  expanded: Stripe.ApiList<Stripe.LineItem> | undefined,
  ask: ProviderCall<Stripe.ApiList<Stripe.LineItem>>
): ProviderCall<ReadonlyArray<Stripe.LineItem>> =>
  expanded === undefined || expanded.has_more
    ? ask.pipe(
        Effect.map(({ data }) => data),
        Effect.mapError((failure) => (isRefusal(failure) ? new ProviderUnavailable({ cause: failure }) : failure))
      )
    : Effect.succeed(expanded.data)
