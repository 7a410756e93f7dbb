import { Effect, Predicate } from "effect"
import type { ProviderAccountNotConnected, ServiceUnavailable } from "../Errors.ts"
import { type FoundSubjects, filterSubjects, truncatedList, withWholeList } from "../events/FilterSubjects.ts"
import { type ProviderEvent, type SoldItems, soldItemsReference } from "../events/Translate.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { Accounts } from "../provider/Accounts.ts"
import { CheckoutSessions } from "../provider/CheckoutSessions.ts"
import { type ConnectedAccount, Provider } from "../provider/Provider.ts"
import type { ProviderFailure } from "../provider/ProviderErrors.ts"
import { checkoutMarker } from "../provider/Schemas.ts"
import type { Environment } from "../Settings.ts"
import { type Consequence, consequenceOf, envelopesOf, needsWholeList, nothing } from "./Consequences.ts"
import type { InboundContext } from "./ReceiptsRepo.ts"

/** Why an event could not be completed from the provider. */
export type CompletionFailure = ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable

/** Whether a checkout session is of this service's making, by its own metadata: others have nothing to complete. */
const isOurs = ({ data }: ProviderEvent): boolean => {
  const { metadata } = data.object
  return Predicate.isRecord(metadata) && metadata[checkoutMarker.key] === checkoutMarker.value
}

/**
 * What a snapshot event of a connected account leads to, with what it lacks fetched from the provider: what a session of
 * ours sells, where a crash kept that from being recorded, and lists that the provider cut off, where an endpoint
 * filters by them. Most events lack nothing, and then the provider is not asked.
 */
export const makeCompletion = Effect.gen(function* () {
  const accounts = yield* Accounts
  const checkoutSessions = yield* CheckoutSessions
  const provider = yield* Provider

  const soldItemsOf = (
    tenant: Tenant,
    event: ProviderEvent,
    { soldItems }: InboundContext
  ): Effect.Effect<SoldItems | null, CompletionFailure> => {
    const reference = soldItemsReference(event)
    return soldItems !== null || reference === null || !isOurs(event)
      ? Effect.succeed(soldItems)
      : checkoutSessions.completeSoldItems(tenant, reference.sessionId)
  }

  const fetchList = (account: ConnectedAccount, { kind, ownerId }: NonNullable<ReturnType<typeof truncatedList>>) =>
    kind === "subscription_items"
      ? provider.listSubscriptionItems(account, ownerId)
      : provider.listInvoiceLines(account, ownerId)

  const wholeSubjects = (
    tenant: Tenant,
    event: ProviderEvent,
    found: FoundSubjects
  ): Effect.Effect<FoundSubjects, CompletionFailure> => {
    const list = truncatedList(event)
    return list === null
      ? Effect.succeed(found)
      : Effect.map(
          accounts.use(tenant, (account) => fetchList(account, list)),
          (items) => filterSubjects(withWholeList(event, list, items), null)
        )
  }

  return (
    environment: Environment,
    event: ProviderEvent,
    context: InboundContext
  ): Effect.Effect<Consequence, CompletionFailure> => {
    const tenant = { organizationId: context.organizationId, environment }
    return Effect.flatMap(soldItemsOf(tenant, event, context), (soldItems) => {
      const envelopes = envelopesOf(environment, event, context, soldItems)
      if (typeof envelopes === "string") {
        return Effect.succeed(nothing(envelopes, context))
      }
      const found = filterSubjects(event, soldItems)
      const subjects = needsWholeList(envelopes, found, context)
        ? wholeSubjects(tenant, event, found)
        : Effect.succeed(found)
      return Effect.map(subjects, (subjects) => consequenceOf(envelopes, subjects, context))
    })
  }
})

/** What `makeCompletion` makes. */
export type Completion = Effect.Effect.Success<typeof makeCompletion>
