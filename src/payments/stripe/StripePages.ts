import { Effect } from "effect"
import type Stripe from "stripe"
import { ProviderUnavailable } from "../../platform/errors/Errors.ts"
import type { ProviderCall } from "../ProviderCall.ts"

const pageSize = 100

/** Maximum pages read of a list. Invoices have the longest lists, with a few hundred lines. */
const maxPagesOfList = 50

/** 100,000 events. */
const maxPagesOfEvents = 1000

const maxPagesOfSearch = 20

/** Requests a page: the first, or the one after an object. */
type AskPage<A> = (params: {
  readonly limit: number
  readonly starting_after?: string
}) => ProviderCall<Stripe.ApiList<A>>

/**
 * Reads a list page by page until `isLastWanted` returns true or the list ends; an empty page is the end, whatever
 * `has_more` says. Returns false if neither happens within `maxPages`, or if the list repeats a page.
 */
const readPages = <A extends { readonly id: string }>(
  ask: AskPage<A>,
  maxPages: number,
  isLastWanted: (page: ReadonlyArray<A>) => Effect.Effect<boolean>
): ProviderCall<boolean> =>
  Effect.gen(function* () {
    const asked = new Set<string>()
    let last: A | undefined
    for (let pages = 0; pages < maxPages; pages++) {
      const { data, has_more } = yield* ask({
        limit: pageSize,
        ...(last === undefined ? {} : { starting_after: last.id })
      })
      last = data.at(-1)
      if ((yield* isLastWanted(data)) || !has_more || last === undefined) return true
      if (asked.has(last.id)) return false
      asked.add(last.id)
    }
    return false
  })

/** Returns all objects of a list. Fails if the list does not end within 50 pages, or repeats a page. */
export const everyPage = <A extends { readonly id: string }>(ask: AskPage<A>): ProviderCall<ReadonlyArray<A>> =>
  Effect.suspend(() => {
    const all: Array<A> = []
    return readPages(ask, maxPagesOfList, (page) => {
      all.push(...page)
      return Effect.succeed(false)
    }).pipe(
      Effect.filterOrFail(
        (ended) => ended,
        () => new ProviderUnavailable({ cause: "A list of the provider does not end" })
      ),
      Effect.as(all)
    )
  })

/** Hands over all events of a list, page by page. Fails beyond 100,000, with a message for the operator. */
export const everyEvent = <A extends { readonly id: string }>(
  ask: AskPage<A>,
  take: (page: ReadonlyArray<A>) => Effect.Effect<boolean>
): ProviderCall<void> =>
  readPages(ask, maxPagesOfEvents, (page) => Effect.map(take(page), (goesOn) => !goesOn)).pipe(
    Effect.filterOrFail(
      (ended) => ended,
      () =>
        new ProviderUnavailable({
          message: "An account has more than 100,000 events in that time. Ask for a shorter one.",
          cause: "The list of events does not end"
        })
    ),
    Effect.asVoid
  )

/** Whether any object of a list matches; `beyond` if none of the first 2,000 does and there are more. */
export const someOnPages = <A extends { readonly id: string }>(
  ask: AskPage<A>,
  matches: (object: A) => boolean,
  beyond: boolean
): ProviderCall<boolean> =>
  Effect.suspend(() => {
    let found = false
    return Effect.map(
      readPages(ask, maxPagesOfSearch, (page) => {
        found = page.some(matches)
        return Effect.succeed(found)
      }),
      (ended) => (ended ? found : beyond)
    )
  })
