import type { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Predicate } from "effect"
import type { PermissionDenied, ProviderAccountNotConnected, ServiceUnavailable } from "../../Errors.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import type { Tenant } from "../../kit/Tenant.ts"
import { orUnavailable } from "../../storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { Provider, type SoldItems } from "../Provider.ts"
import type { ProviderFailure } from "../ProviderErrors.ts"
import { providerIdempotencyKey } from "../ProviderIdempotency.ts"
import { Prices, requireSubscriptions, trialOf } from "../prices/Prices.ts"
import { checkoutMarker, type ProviderObject } from "../Schemas.ts"
import { makeSoldItemsRepo } from "../SoldItemsRepo.ts"
import type { CreateCheckoutSession } from "./Api.ts"

type Failure = ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable

/** Checkout sessions that this service makes, with the record of what each sells. */
export class CheckoutSessions extends Context.Tag("connected-payments/provider/CheckoutSessions")<
  CheckoutSessions,
  {
    /**
     * Makes a session and remembers what it sells. The same idempotency key with the same parameters makes one.
     *
     * A subscription begins with the trial of its prices. A recurring price that the caller may not sell is
     * `permission_denied`, whatever the mode says.
     */
    readonly create: (
      principal: PrincipalShape,
      params: CreateCheckoutSession,
      effectKey: string
    ) => Effect.Effect<ProviderObject, Failure | PermissionDenied>
    /**
     * What a session sells, read from the provider and recorded, where a crash came between the provider's answer and
     * our record. Null where the session is not of this service's making.
     */
    readonly completeSoldItems: (tenant: Tenant, sessionId: string) => Effect.Effect<SoldItems | null, Failure>
  }
>() {
  static readonly layer: Layer.Layer<CheckoutSessions, never, SqlClient.SqlClient | Provider | Accounts | Prices> =
    Layer.effect(
      CheckoutSessions,
      Effect.gen(function* () {
        const provider = yield* Provider
        const accounts = yield* Accounts
        const prices = yield* Prices
        const soldItems = yield* makeSoldItemsRepo

        /** The provider refuses recurring prices in payment mode. Who may not sell them is told that instead. */
        const explainRefusal = Effect.fnUntraced(function* (
          principal: PrincipalShape,
          params: CreateCheckoutSession,
          refusal: ProviderFailure
        ) {
          if (params.mode === "payment" && !principal.permissions.has("subscriptions:write")) {
            const terms = yield* prices.termsOf(principal, params.line_items)
            yield* terms.some(({ recurring }) => recurring) ? requireSubscriptions(principal) : Effect.void
          }
          return yield* Effect.fail(refusal)
        })

        const create = Effect.fn("CheckoutSessions.create")(function* (
          principal: PrincipalShape,
          params: CreateCheckoutSession,
          effectKey: string
        ) {
          const trialPeriodDays =
            params.mode === "subscription" ? trialOf(yield* prices.termsOf(principal, params.line_items)) : null
          const created = yield* accounts
            .use(principal, (account) =>
              provider.createCheckoutSession(
                account,
                { ...params, trialPeriodDays },
                {
                  idempotencyKey: providerIdempotencyKey({
                    tenant: principal,
                    account,
                    operation: "checkout.sessions.create",
                    effectKey
                  })
                }
              )
            )
            .pipe(Effect.catchTag("ProviderRequestRefused", (refusal) => explainRefusal(principal, params, refusal)))
          yield* soldItems.insert(principal, String(created.session["id"]), created.soldItems).pipe(orUnavailable)
          return created.session
        })

        const completeSoldItems = Effect.fn("CheckoutSessions.completeSoldItems")(function* (
          tenant: Tenant,
          sessionId: string
        ) {
          const sold = yield* accounts.use(tenant, (account) =>
            Effect.gen(function* () {
              const session = yield* provider.retrieveCheckoutSession(account, sessionId)
              return isOurs(session) ? yield* provider.listSessionItems(account, sessionId) : null
            })
          )
          if (sold !== null) {
            yield* soldItems.insert(tenant, sessionId, sold).pipe(orUnavailable)
          }
          return sold
        })

        return { create, completeSoldItems }
      })
    )
}

const isOurs = ({ metadata }: ProviderObject): boolean =>
  Predicate.isRecord(metadata) && metadata[checkoutMarker.key] === checkoutMarker.value
