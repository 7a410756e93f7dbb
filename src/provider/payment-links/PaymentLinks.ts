import type { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Predicate } from "effect"
import type { PermissionDenied, ProviderAccountNotConnected, ServiceUnavailable } from "../../errors/Errors.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { orUnavailable } from "../../storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { makeSoldItemsRepo } from "../checkout/SoldItemsRepo.ts"
import { Provider } from "../Provider.ts"
import type { ProviderFailure } from "../ProviderErrors.ts"
import { providerIdempotencyKey } from "../ProviderIdempotencyKey.ts"
import { Prices, requireSubscriptions, trialOf } from "../prices/Prices.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { CreatePaymentLink } from "./Api.ts"

const make = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const prices = yield* Prices
  const soldItems = yield* makeSoldItemsRepo

  const create = Effect.fn("PaymentLinks.create")(function* (
    principal: PrincipalShape,
    params: CreatePaymentLink,
    effectKey: string
  ) {
    const terms = yield* prices.termsOf(principal, params.line_items)
    const recurs = terms.some(({ recurring }) => recurring)
    yield* recurs ? requireSubscriptions(principal) : Effect.void
    const mode = recurs ? ("subscription" as const) : ("payment" as const)
    const operation = "payment_links.create"
    const created = yield* accounts.use(principal, (account) =>
      provider.createPaymentLink(
        account,
        { ...params, mode, trialPeriodDays: trialOf(terms) },
        { idempotencyKey: providerIdempotencyKey({ tenant: principal, account, operation, effectKey }) }
      )
    )
    yield* soldItems.insert(principal, String(created.link["id"]), created.soldItems).pipe(orUnavailable)
    return created.link
  })

  return { create }
})

/** Payment links that this service creates, with a record of what each sells. */
export class PaymentLinks extends Context.Tag("connected-payments/provider/PaymentLinks")<
  PaymentLinks,
  {
    /**
     * Creates a link with the mode and trial of its prices, and records what it sells, for the events of its sessions.
     * The same idempotency key with the same parameters creates one. If the caller may not sell a recurring price, it
     * fails with `permission_denied`.
     */
    readonly create: (
      principal: PrincipalShape,
      params: CreatePaymentLink,
      effectKey: string
    ) => Effect.Effect<
      ProviderObject,
      ProviderFailure | ProviderAccountNotConnected | PermissionDenied | ServiceUnavailable
    >
  }
>() {
  static readonly layer: Layer.Layer<PaymentLinks, never, SqlClient.SqlClient | Provider | Accounts | Prices> =
    Layer.effect(PaymentLinks, make)
}

/** Whether a link sells a recurring price: only such links have subscription settings. Its lines may be cut off. */
const sellsRecurring = (link: unknown): boolean =>
  Predicate.isRecord(link) && Predicate.isRecord(link["subscription_data"])

/**
 * Checks that a caller may see the stored answer to a link's creation, which needs the same permission as the creation.
 */
export const mayHaveLink =
  (principal: PrincipalShape) =>
  (link: unknown): Effect.Effect<void, PermissionDenied> =>
    sellsRecurring(link) ? requireSubscriptions(principal) : Effect.void
