import { Effect, type Schema } from "effect"
import * as Params from "./Params.ts"
import { type Noun, notFound, type ProviderError, refuse, resourceMissing } from "./ProviderError.ts"
import type { Kind, Records } from "./Records.ts"
import { noParams, type RequestContext, type Route, route } from "./Route.ts"
import type { Shape } from "./Shapes.ts"

/** The parameters of every list: `limit` 1 to 100 (default 10) and one cursor. */
export const pageParams = {
  ending_before: Params.optional(Params.text()),
  limit: Params.optional(Params.integer(1, 100)),
  starting_after: Params.optional(Params.text())
}

/** The start and length of a page. */
export interface PageRequest {
  readonly ending_before?: string
  readonly limit?: number
  readonly starting_after?: string
}

/** A page of a list in the provider's form. */
export interface Page<Item> {
  readonly object: "list"
  readonly data: ReadonlyArray<Item>
  readonly has_more: boolean
  readonly url: string
}

const defaultLimit = 10

interface ListSource<Item> {
  /** All items, in the order of the list. */
  readonly items: ReadonlyArray<Item>
  readonly url: string
  /** The provider's word for one item, used in the message about an unknown cursor. */
  readonly noun: string
  readonly matches?: (item: Item) => boolean
}

/**
 * Returns one page: the matching items after (or before) the cursor. The cursor itself need not match the filter.
 *
 * Errors: `resource_missing` (400) for an unknown cursor; both cursors at once (400).
 */
export const page = <Item extends { readonly id: string }>(
  { items, matches = () => true, noun, url }: ListSource<Item>,
  { ending_before, limit = defaultLimit, starting_after }: PageRequest
): Effect.Effect<Page<Item>, ProviderError> => {
  if (ending_before !== undefined && starting_after !== undefined) {
    return Effect.fail(
      refuse({ param: "ending_before", message: "You can't use both `starting_after` and `ending_before`." })
    )
  }
  const cursor = starting_after ?? ending_before
  const index = cursor === undefined ? -1 : items.findIndex(({ id }) => id === cursor)
  if (cursor !== undefined && index < 0) {
    return Effect.fail(resourceMissing(noun, cursor, starting_after === undefined ? "ending_before" : "starting_after"))
  }
  const backwards = ending_before !== undefined
  const candidates = (backwards ? items.slice(0, index) : items.slice(index + 1)).filter(matches)
  return Effect.succeed({
    object: "list",
    data: backwards ? candidates.slice(-limit) : candidates.slice(0, limit),
    has_more: candidates.length > limit,
    url
  })
}

/** Checks a list's payment filters: an unknown payment is refused (400, `resource_missing`). */
export const knownPayment = (
  { objects }: RequestContext,
  { charge, payment_intent }: { readonly charge?: string; readonly payment_intent?: string }
): Effect.Effect<void, ProviderError> => {
  if (charge !== undefined && objects.get("charge", charge) === undefined) {
    return Effect.fail(resourceMissing("charge", charge, "charge"))
  }
  return payment_intent !== undefined && objects.get("payment_intent", payment_intent) === undefined
    ? Effect.fail(resourceMissing("payment_intent", payment_intent, "payment_intent"))
    : Effect.void
}

/** Newest first: the reverse of the order in which records were created, even within the same second. */
export const newestFirst = <Item>(oldestFirst: ReadonlyArray<Item>): ReadonlyArray<Item> => oldestFirst.toReversed()

/** Kinds of records that the provider's API exposes unchanged, under their own names. */
type ListedKind = Kind & Noun & Shape

/** Finds an object by its id; fails with 404 if there is none. */
export const existingOf =
  <K extends ListedKind>(kind: K) =>
  ({ objects }: RequestContext, id: string): Effect.Effect<Records[K], ProviderError> => {
    const found = objects.get(kind, id)
    return found === undefined ? Effect.fail(notFound(kind, id)) : Effect.succeed(found)
  }

/** The operation that retrieves an object of a shape. */
export const retrieveRoute = (
  path: string,
  object: Shape,
  find: (context: RequestContext, id: string) => Effect.Effect<object, ProviderError>
): Route =>
  route({
    method: "GET",
    path,
    answers: { object },
    params: noParams,
    run: (context, _, id) => find(context, id)
  })

/** The operation that lists the objects of a kind, newest first. */
export const listRoute = <K extends ListedKind, A extends PageRequest, I>({
  kind,
  matches,
  params,
  path
}: {
  readonly path: string
  readonly kind: K
  readonly params: Schema.Schema<A, I>
  readonly matches: (object: Records[K], params: A) => boolean
}): Route =>
  route({
    method: "GET",
    path,
    answers: { listOf: kind },
    params,
    run: ({ objects }, given) => {
      const items: ReadonlyArray<Records[K] & { readonly id: string }> = newestFirst(objects.all(kind))
      return page({ items, matches: (object) => matches(object, given), noun: kind, url: path }, given)
    }
  })
