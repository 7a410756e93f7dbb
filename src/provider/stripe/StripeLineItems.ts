import { Effect } from "effect"
import type Stripe from "stripe"
import { ProviderUnavailable } from "../../Errors.ts"
import type { SoldItems } from "../Provider.ts"
import { type AccountAccessRevoked, isRefusal, type ProviderFailure } from "../ProviderErrors.ts"

/** The lines of sessions and payment links at Stripe. */

const unique = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(ids)]

/** What lines sell. */
export const soldItemsOf = (items: ReadonlyArray<Stripe.LineItem>): SoldItems => {
  const prices = items.flatMap((item) => (item.price === null ? [] : [item.price]))
  return {
    priceIds: unique(prices.map((price) => price.id)),
    productIds: unique(prices.map(({ product }) => (typeof product === "string" ? product : product.id)))
  }
}

/** More lines than one page holds are not possible: sessions have at most 100, payment links 20. */
export const everyLine = { limit: 100 } as const

type Lines = Effect.Effect<Stripe.ApiList<Stripe.LineItem>, ProviderFailure | AccountAccessRevoked>

/**
 * The lines that came expanded with a new object; they are cut off after the first ten, and then all are asked for. That
 * this was refused says nothing against the object, which is there: the creation's outcome is open until a repeat.
 */
export const allLines = (
  expanded: Stripe.ApiList<Stripe.LineItem> | undefined,
  ask: Lines
): Effect.Effect<ReadonlyArray<Stripe.LineItem>, ProviderFailure | AccountAccessRevoked> =>
  expanded === undefined || expanded.has_more
    ? ask.pipe(
        Effect.map(({ data }) => data),
        Effect.mapError((failure) => (isRefusal(failure) ? new ProviderUnavailable({ cause: failure }) : failure))
      )
    : Effect.succeed(expanded.data)
