import { Effect, Predicate } from "effect"
import { filterSubjects, type TruncatedList, truncatedList, withWholeList } from "../events/stripe/FilterSubjects.ts"
import { type ProviderEvent, type SoldItems, soldItemsReference } from "../events/stripe/Translate.ts"
import { Accounts } from "../payments/Accounts.ts"
import { CheckoutSessions } from "../payments/checkout/CheckoutSessions.ts"
import { isMarked } from "../payments/checkout/Metadata.ts"
import { Provider } from "../payments/Provider.ts"
import type { ConnectedAccount } from "../payments/ProviderCall.ts"
import type { ProviderFailure } from "../payments/ProviderErrors.ts"
import type { ProviderObject } from "../payments/Schemas.ts"
import type { ProviderAccountNotConnected, ServiceUnavailable } from "../platform/errors/Errors.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { KeyedHash } from "../platform/kit/KeyedHash.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import type { InboundContext, OfferedItems } from "./ContextStatement.ts"
import {
  type Decision,
  decisionOf,
  envelopesOf,
  needsWholeList,
  nothing,
  unreadable,
  unreadableFilters
} from "./Decision.ts"

/** Why an event could not be completed from the provider. */
export type EnrichmentFailure = ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable

/** Data fetched for an event so far; null if the provider has no such object. */
export interface Fetched {
  readonly soldItems?: SoldItems | null
  readonly items?: ReadonlyArray<ProviderObject> | null
}

/** Data has to be fetched from the provider before a decision. */
export interface NeedsFetch {
  readonly _tag: "NeedsFetch"
  readonly fetch: Effect.Effect<Fetched, EnrichmentFailure>
}

export type DecisionStep<A> = NeedsFetch | { readonly _tag: "Decided"; readonly value: A }

const needsFetch = (fetch: NeedsFetch["fetch"]): NeedsFetch => ({ _tag: "NeedsFetch", fetch })

const decided = <A>(value: A): DecisionStep<A> => ({ _tag: "Decided", value })

/**
 * Whether a session may have sold something other than recorded at its creation: payers can change quantities or remove
 * a line, if a payment link lets them, and add optional items that the account's owner offers at the provider.
 */
const mayDiffer = ({ subtotal }: OfferedItems, session: ProviderObject): boolean =>
  subtotal === null ||
  session["amount_subtotal"] !== subtotal ||
  (Array.isArray(session["optional_items"]) && session["optional_items"].length > 0)

/**
 * Decides about a connected account's snapshot event, after fetching missing data from the provider: what a session of
 * ours sold, unless it must be what was recorded, and lists that the provider truncated, if an endpoint filters by
 * them. Most events lack nothing, and need no call to the provider.
 */
export const makeEnrichment = Effect.gen(function* () {
  const accounts = yield* Accounts
  const checkoutSessions = yield* CheckoutSessions
  const provider = yield* Provider
  const keyedHash = yield* KeyedHash

  /** Maps "not found" to null: an object that the provider does not know now will not be found on a retry either. */
  const orNull = <A, E>(asked: Effect.Effect<A, E>) =>
    Effect.catchIf(
      asked,
      (error) => Predicate.isTagged(error, "ProviderObjectNotFound"),
      () => Effect.as(Effect.logWarning("The provider does not know the object of its own notification"), null)
    )

  const fetchSoldItems = (tenant: Tenant, sessionId: string, isRecorded: boolean): NeedsFetch["fetch"] =>
    Effect.map(
      orNull(
        isRecorded ? checkoutSessions.soldIn(tenant, sessionId) : checkoutSessions.completeSoldItems(tenant, sessionId)
      ),
      (soldItems) => ({ soldItems })
    )

  const listItems = (account: ConnectedAccount, { kind, ownerId }: TruncatedList) =>
    kind === "subscription_items"
      ? provider.listSubscriptionItems(account, ownerId)
      : provider.listInvoiceLines(account, ownerId)

  const fetchItems = (tenant: Tenant, list: TruncatedList): NeedsFetch["fetch"] =>
    Effect.map(orNull(accounts.use(tenant, (account) => listItems(account, list))), (items) => ({ items }))

  /** The decision about an event, given the context and the fetched data, or the data to fetch first. */
  const decide = (
    environment: Environment,
    event: ProviderEvent,
    context: InboundContext,
    fetched: Fetched
  ): DecisionStep<Decision> => {
    const tenant = { organizationId: context.organizationId, environment }
    const { offered } = context
    const { object } = event.data
    const reference = soldItemsReference(event)
    if (reference !== null && fetched.soldItems === undefined) {
      const isOpen = offered === null ? isMarked(object) : mayDiffer(offered, object)
      if (isOpen) return needsFetch(fetchSoldItems(tenant, reference.sessionId, offered !== null))
    }
    const soldItems = fetched.soldItems ?? offered
    const envelopes = envelopesOf(environment, event, context, soldItems)
    if (typeof envelopes === "string") {
      return decided(nothing(envelopes, context))
    }
    if ("_tag" in envelopes) {
      return decided(unreadable("object", envelopes, context))
    }
    const list = truncatedList(event)
    const whole = list === null || !fetched.items ? event : withWholeList(event, list, fetched.items)
    const subjects = filterSubjects(whole, soldItems)
    return list !== null && fetched.items === undefined && needsWholeList(envelopes, subjects, context)
      ? needsFetch(fetchItems(tenant, list))
      : decided(
          decisionOf(envelopes, context, { subjects, keyedHash }, unreadableFilters(envelopes, subjects, context))
        )
  }

  return { decide }
})

/** The initial value: nothing has been fetched yet. */
export const nothingFetched: Fetched = {}

/**
 * Retries an attempt until it decides, each time with everything fetched so far. Each thing is fetched once, so there
 * are three attempts at most. Each attempt reads again the data that may have changed during the call to the provider.
 */
export const untilDecided = <A, E>(
  attempt: (fetched: Fetched) => Effect.Effect<DecisionStep<A>, E>,
  fetched: Fetched = nothingFetched
): Effect.Effect<A, E | EnrichmentFailure> =>
  Effect.flatMap(attempt(fetched), (attempted) =>
    attempted._tag === "Decided"
      ? Effect.succeed(attempted.value)
      : Effect.flatMap(attempted.fetch, (more) => untilDecided(attempt, { ...fetched, ...more }))
  )
