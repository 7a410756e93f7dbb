import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { PermissionDenied } from "../Errors.ts"
import { Principal } from "../identity/Principal.ts"
import { Accounts } from "./Accounts.ts"
import { CheckoutSessions } from "./CheckoutSessions.ts"
import { type ConnectedAccount, Provider } from "./Provider.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import { providerIdempotencyKey } from "./ProviderIdempotency.ts"

/** What most operations are: one call on the caller's connected account. */
const onAccount = <A>(call: (account: ConnectedAccount) => Effect.Effect<A, ProviderFailure | AccountAccessRevoked>) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const principal = yield* Principal
    return yield* accounts.use(principal, call)
  })

/** A write that is one call: the caller's idempotency key decides what counts as a repeat. */
const writeOnAccount = <A>(
  operation: string,
  callerKey: string,
  call: (
    account: ConnectedAccount,
    options: { readonly idempotencyKey: string }
  ) => Effect.Effect<A, ProviderFailure | AccountAccessRevoked>
) =>
  Effect.flatMap(Principal, (tenant) =>
    onAccount((account) =>
      call(account, { idempotencyKey: providerIdempotencyKey({ tenant, account, operation, callerKey }) })
    )
  )

/** Serves `ProductsApi`. */
export const productsHttp = HttpApiBuilder.group(Api, "products", (handlers) =>
  Effect.gen(function* () {
    const provider = yield* Provider
    return handlers
      .handle("create", ({ headers, payload }) =>
        writeOnAccount("products.create", headers["idempotency-key"], (account, options) =>
          provider.createProduct(account, payload, options)
        )
      )
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listProducts(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrieveProduct(account, path.id)))
  })
)

/** Serves `PricesApi`. */
export const pricesHttp = HttpApiBuilder.group(Api, "prices", (handlers) =>
  Effect.gen(function* () {
    const provider = yield* Provider
    return handlers
      .handle("create", ({ headers, payload }) =>
        writeOnAccount("prices.create", headers["idempotency-key"], (account, options) =>
          provider.createPrice(account, payload, options)
        )
      )
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listPrices(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrievePrice(account, path.id)))
  })
)

/** Serves `CheckoutSessionsApi`. */
export const checkoutSessionsHttp = HttpApiBuilder.group(Api, "checkoutSessions", (handlers) =>
  Effect.gen(function* () {
    const provider = yield* Provider
    const sessions = yield* CheckoutSessions
    return handlers
      .handle(
        "create",
        Effect.fnUntraced(function* ({ headers, payload }) {
          const principal = yield* Principal
          // A subscription-mode session is what a recurring price needs (contract, Write operations)
          if (payload.mode === "subscription" && !principal.permissions.has("subscriptions:write")) {
            return yield* new PermissionDenied({
              message: "A checkout session with a recurring price also needs the permission subscriptions:write."
            })
          }
          return yield* sessions.create(principal, payload, headers["idempotency-key"])
        })
      )
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listCheckoutSessions(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrieveCheckoutSession(account, path.id)))
  })
)
