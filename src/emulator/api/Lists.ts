import { Effect, Schema } from "effect"
import { invalid, type ProviderError, resourceMissing } from "../ProviderError.ts"
import type { List } from "../Records.ts"
import * as Params from "./Params.ts"
import { named, type RequestContext } from "./Route.ts"

/** The parameters of every list: `limit` 1 to 100 (default 10) and one cursor. */
export const pageParams = Params.optionals({
  ending_before: Params.text(),
  limit: Params.integer(1, 100),
  starting_after: Params.text()
})

export type PageRequest = typeof pageParams.Type

/** The parameters of a list with further filters. */
export const listParams = <A, I>(
  filters: Schema.Schema<A, I>
): Schema.Schema<PageRequest & A, typeof pageParams.Encoded & I> => Schema.extend(pageParams, filters)

export const storedList = <Item>(data: ReadonlyArray<Item>, url: string, has_more = false): List<Item> => ({
  object: "list",
  data,
  has_more,
  url
})

const defaultLimit = 10

interface ListSource<Item> {
  readonly items: ReadonlyArray<Item>
  readonly url: string
  /** The provider's word for one item, used in the message about an unknown cursor. */
  readonly noun: string
  readonly matches?: (item: Item) => boolean
}

/** Errors (400): `resource_missing` for an unknown cursor, which need not match the filter; both cursors. */
export const page = <Item extends { readonly id: string }>(
  { items, matches = () => true, noun, url }: ListSource<Item>,
  { ending_before, limit = defaultLimit, starting_after }: PageRequest
): Effect.Effect<List<Item>, ProviderError> => {
  if (ending_before !== undefined && starting_after !== undefined) {
    return invalid("ending_before", "You can't use both `starting_after` and `ending_before`.")
  }
  const cursor = starting_after ?? ending_before
  const index = cursor === undefined ? -1 : items.findIndex(({ id }) => id === cursor)
  if (cursor !== undefined && index < 0) {
    return resourceMissing(noun, cursor, starting_after === undefined ? "ending_before" : "starting_after")
  }
  const backwards = ending_before !== undefined
  const candidates = (backwards ? items.slice(0, index) : items.slice(index + 1)).filter(matches)
  const data = backwards ? candidates.slice(-limit) : candidates.slice(0, limit)
  return Effect.succeed(storedList(data, url, candidates.length > limit))
}

export const paymentFilters = Params.optionals({
  charge: Params.text(),
  created: Params.range,
  payment_intent: Params.text()
})

/** Checks that a list's filters name a charge and a payment intent that exist. */
export const checkPayment = Effect.fnUntraced(function* (
  context: RequestContext,
  { charge, payment_intent }: { readonly charge?: string; readonly payment_intent?: string }
) {
  if (charge !== undefined) yield* named(context, "charge", charge)
  if (payment_intent !== undefined) yield* named(context, "payment_intent", payment_intent)
})

/** Newest first: the reverse of the order in which records were created, even within the same second. */
export const newestFirst = <Item>(oldestFirst: ReadonlyArray<Item>): ReadonlyArray<Item> => oldestFirst.toReversed()
