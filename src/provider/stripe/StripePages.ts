import { Effect } from "effect"
import type Stripe from "stripe"
import { ProviderUnavailable } from "../../Errors.ts"
import type { AccountAccessRevoked, ProviderFailure } from "../ProviderErrors.ts"

/** Lists of Stripe beyond their first page. */

/** The largest page of Stripe's lists. */
const pageSize = 100

/** More pages than any subscription or invoice has: an invoice has at most some hundred lines. */
const maxPagesOfList = 50

/** How many pages are looked through for one object. */
const maxPagesOfSearch = 20

/** Asks for a page: those after an object where there is one. */
type AskPage<A> = (params: {
  readonly limit: number
  readonly starting_after?: string
}) => Effect.Effect<Stripe.ApiList<A>, ProviderFailure | AccountAccessRevoked>

/**
 * Reads a list page by page until a page is the last wanted. An empty page ends it, whatever else it says. Answers whether
 * the list's end, or a page that ended it, was reached within `maxPages` and without coming back to where it was.
 */
const readPages = <A extends { readonly id: string }>(
  ask: AskPage<A>,
  maxPages: number,
  isLastWanted: (page: ReadonlyArray<A>) => boolean
): Effect.Effect<boolean, ProviderFailure | AccountAccessRevoked> =>
  Effect.gen(function* () {
    const asked = new Set<string>()
    let last: A | undefined
    for (let pages = 0; pages < maxPages; pages++) {
      const { data, has_more } = yield* ask({
        limit: pageSize,
        ...(last === undefined ? {} : { starting_after: last.id })
      })
      last = data.at(-1)
      if (isLastWanted(data) || !has_more || last === undefined) return true
      if (asked.has(last.id)) return false
      asked.add(last.id)
    }
    return false
  })

/** All objects of a list. One that does not end within 50 pages, or comes back to where it was, is no answer. */
export const everyPage = <A extends { readonly id: string }>(
  ask: AskPage<A>
): Effect.Effect<ReadonlyArray<A>, ProviderFailure | AccountAccessRevoked> =>
  Effect.suspend(() => {
    const all: Array<A> = []
    return Effect.flatMap(
      readPages(ask, maxPagesOfList, (page) => {
        all.push(...page)
        return false
      }),
      (ended) =>
        ended ? Effect.succeed(all) : new ProviderUnavailable({ cause: "A list of the provider does not end" })
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
      readPages(ask, maxPagesOfSearch, (page) => {
        found = page.some(isSuch)
        return found
      }),
      (ended) => (ended ? found : beyond)
    )
  })
