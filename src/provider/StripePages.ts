import { Effect } from "effect"
import type Stripe from "stripe"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"

/** Lists of Stripe beyond their first page. */

/** The largest page of Stripe's lists. */
const pageSize = 100

/** How many pages are asked for at most, whatever the provider says of there being more. */
const maxPages = 20

/** Asks for a page: those after an object where there is one. */
type AskPage<A> = (params: {
  readonly limit: number
  readonly starting_after?: string
}) => Effect.Effect<Stripe.ApiList<A>, ProviderFailure | AccountAccessRevoked>

/**
 * Reads a list page by page until a page is the last wanted. An empty page ends it, whatever else it says. Answers whether
 * the list's end, or a page that ended it, was reached within `maxPages`.
 */
const readPages = <A extends { readonly id: string }>(
  ask: AskPage<A>,
  isLastWanted: (page: ReadonlyArray<A>) => boolean
): Effect.Effect<boolean, ProviderFailure | AccountAccessRevoked> =>
  Effect.gen(function* () {
    let last: A | undefined
    for (let pages = 0; pages < maxPages; pages++) {
      const { data, has_more } = yield* ask({
        limit: pageSize,
        ...(last === undefined ? {} : { starting_after: last.id })
      })
      last = data.at(-1)
      if (isLastWanted(data) || !has_more || last === undefined) return true
    }
    return false
  })

/** All objects of a list, 2,000 at most: lists of an invoice or a subscription are shorter. */
export const everyPage = <A extends { readonly id: string }>(
  ask: AskPage<A>
): Effect.Effect<ReadonlyArray<A>, ProviderFailure | AccountAccessRevoked> =>
  Effect.suspend(() => {
    const all: Array<A> = []
    return Effect.as(
      readPages(ask, (page) => {
        all.push(...page)
        return false
      }),
      all
    )
  })

/** Whether an object of a list is such a one; `beyond` where none of the first 2,000 is and there are more. */
export const someOnPages = <A extends { readonly id: string }>(
  ask: AskPage<A>,
  isSuch: (object: A) => boolean,
  beyond: boolean
): Effect.Effect<boolean, ProviderFailure | AccountAccessRevoked> =>
  Effect.suspend(() => {
    let found = false
    return Effect.map(
      readPages(ask, (page) => {
        found = page.some(isSuch)
        return found
      }),
      (ended) => (ended ? found : beyond)
    )
  })
