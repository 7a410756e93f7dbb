import { Effect, Predicate } from "effect"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { type PermissionDenied, ProviderUnavailable } from "../../platform/errors/Errors.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { isMarked, ownPairs } from "../checkout-sessions/Metadata.ts"
import { makeSoldItemsRepo } from "../checkout-sessions/SoldItemsRepo.ts"
import { Provider } from "../Provider.ts"
import type { ConnectedAccount, KeyFor, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import { isRefusal } from "../ProviderErrors.ts"
import { Prices, requireSubscriptions, trialOf } from "../prices/Prices.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { CreatePaymentLink, UpdatePaymentLink } from "./Api.ts"
import type { CarriedMetadata } from "./StripePaymentLinks.ts"

const makeCreate = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const prices = yield* Prices
  const soldItems = yield* makeSoldItemsRepo

  /**
   * Creates a link with the mode and trial of its prices, and records its items, for the events of its sessions. The
   * same idempotency key with the same parameters creates one link. If the caller may not sell a recurring price, it
   * fails with `permission_denied`.
   */
  return Effect.fn("PaymentLinks.create")(function* (
    principal: PrincipalShape,
    params: CreatePaymentLink,
    keyFor: KeyFor
  ) {
    const terms = yield* prices.termsOf(principal, params.line_items)
    const recurs = terms.some(({ recurring }) => recurring)
    yield* recurs ? requireSubscriptions(principal) : Effect.void
    const mode = recurs ? ("subscription" as const) : ("payment" as const)
    const created = yield* accounts.use(principal, (account) =>
      provider.createPaymentLink(account, { ...params, mode, trialPeriodDays: trialOf(terms) }, keyFor(account))
    )
    const { description, link } = created
    yield* soldItems.insert(principal, String(link["id"]), created.soldItems, { description }).pipe(orUnavailable)
    return link
  })
})

const makeUpdate = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts

  /** Another change may come in between, so the answer is compared again. */
  const carry = (
    account: ConnectedAccount,
    link: ProviderObject,
    key: (step: string) => WriteOptions,
    tries = maximumCarries
  ): ProviderCall<ProviderObject> => {
    const carried = carriedOf(link)
    return carried === undefined || tries === 0
      ? Effect.succeed(link)
      : provider
          .carryLinkMetadata(account, String(link["id"]), carried, key(`carry ${tries} ${JSON.stringify(carried)}`))
          .pipe(
            // The link itself is already changed; a repeat completes the copy
            Effect.mapError((failure) => (isRefusal(failure) ? new ProviderUnavailable({ cause: failure }) : failure)),
            Effect.flatMap((changed) => carry(account, changed, key, tries - 1))
          )
  }

  /** Opening a link that sells a recurring price requires the same permission as creating it. */
  const requireToOpen = Effect.fnUntraced(function* (principal: PrincipalShape, id: string) {
    if (!principal.permissions.has("subscriptions:write")) {
      const link = yield* accounts.use(principal, (account) => provider.retrievePaymentLink(account, id))
      yield* link["active"] !== true && sellsRecurring(link) ? requireSubscriptions(principal) : Effect.void
    }
  })

  /**
   * Changes a link; absent fields are unchanged, and metadata is merged. The resulting metadata of a link of this
   * service is copied to the payments or subscriptions of sessions opened from then on. If the caller may not sell a
   * recurring price, opening a closed link that sells one fails with `permission_denied`.
   */
  return Effect.fn("PaymentLinks.update")(function* (
    principal: PrincipalShape,
    id: string,
    changes: UpdatePaymentLink,
    keyFor: KeyFor
  ) {
    yield* changes.active === true ? requireToOpen(principal, id) : Effect.void
    return yield* accounts.use(principal, (account) => {
      const key = (step?: string) => keyFor(account, step)
      const changed = provider.updatePaymentLink(account, id, changes, key())
      return changes.metadata === undefined ? changed : Effect.flatMap(changed, (link) => carry(account, link, key))
    })
  })
})

export const makePaymentLinks = Effect.all({ create: makeCreate, update: makeUpdate })

/** Maximum attempts to copy a link's metadata. More are needed only if others keep changing it. */
const maximumCarries = 3

const samePairs = (some: Readonly<Record<string, unknown>>, others: Readonly<Record<string, unknown>>): boolean =>
  Object.keys(some).length === Object.keys(others).length &&
  Object.entries(some).every(([key, value]) => others[key] === value)

/** Undefined if it is up to date, or the link was not created here: then its owner decides. */
const carriedOf = (link: ProviderObject): CarriedMetadata | undefined => {
  const mode = sellsRecurring(link) ? ("subscription" as const) : ("payment" as const)
  const data = link[mode === "payment" ? "payment_intent_data" : "subscription_data"]
  const current = Predicate.isRecord(data) && Predicate.isRecord(data["metadata"]) ? data["metadata"] : {}
  const metadata = ownPairs(link)
  return isMarked(link) && !samePairs(metadata, current) ? { mode, metadata } : undefined
}

/** Whether a link sells a recurring price: only such links have subscription settings. */
const sellsRecurring = (link: unknown): boolean =>
  Predicate.isRecord(link) && Predicate.isRecord(link["subscription_data"])

/** Which needs the same permission as the creation. */
export const mayHaveLink =
  (principal: PrincipalShape) =>
  (link: unknown): Effect.Effect<void, PermissionDenied> =>
    sellsRecurring(link) ? requireSubscriptions(principal) : Effect.void
