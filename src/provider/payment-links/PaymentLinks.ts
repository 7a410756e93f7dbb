import type { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Predicate } from "effect"
import type { PermissionDenied, ProviderAccountNotConnected, ServiceUnavailable } from "../../Errors.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { orUnavailable } from "../../storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { Provider } from "../Provider.ts"
import type { ProviderFailure } from "../ProviderErrors.ts"
import { providerIdempotencyKey } from "../ProviderIdempotency.ts"
import { Prices, requireSubscriptions, trialOf } from "../prices/Prices.ts"
import type { ProviderObject } from "../Schemas.ts"
import { makeSoldItemsRepo } from "../SoldItemsRepo.ts"
import type { CreatePaymentLink } from "./Api.ts"

/** Payment links that this service makes, with the record of what each sells. */
export class PaymentLinks extends Context.Tag("connected-payments/provider/PaymentLinks")<
  PaymentLinks,
  {
    /**
     * Makes a link of its prices' terms, and remembers what it sells, for the events of its sessions. The same
     * idempotency key with the same parameters makes one. A recurring price that the caller may not sell is
     * `permission_denied`.
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
    Layer.effect(
      PaymentLinks,
      Effect.gen(function* () {
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
          yield* terms.some(({ recurring }) => recurring) ? requireSubscriptions(principal) : Effect.void
          const mode = terms.some(({ recurring }) => recurring) ? ("subscription" as const) : ("payment" as const)
          const created = yield* accounts.use(principal, (account) =>
            provider.createPaymentLink(
              account,
              { ...params, mode, trialPeriodDays: trialOf(terms) },
              {
                idempotencyKey: providerIdempotencyKey({
                  tenant: principal,
                  account,
                  operation: "payment_links.create",
                  effectKey
                })
              }
            )
          )
          yield* soldItems.insert(principal, String(created.link["id"]), created.soldItems).pipe(orUnavailable)
          return created.link
        })

        return { create }
      })
    )
}

/** Only a link that sells what recurs has settings for subscriptions; its lines may be cut off. */
const sellsRecurring = (link: unknown): boolean =>
  Predicate.isRecord(link) && Predicate.isRecord(link["subscription_data"])

/** The stored answer to a link's creation is for those who may make it: what recurs takes `subscriptions:write`. */
export const mayHaveLink =
  (principal: PrincipalShape) =>
  (link: unknown): Effect.Effect<void, PermissionDenied> =>
    sellsRecurring(link) ? requireSubscriptions(principal) : Effect.void
