import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { PermissionDenied, type ProviderAccountNotConnected, type ServiceUnavailable } from "../Errors.ts"
import { Principal } from "../identity/Principal.ts"
import { type AuditAction, makeAudit } from "../kit/Audit.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import { Accounts } from "./Accounts.ts"
import { CheckoutSessions } from "./CheckoutSessions.ts"
import { type ConnectedAccount, Provider } from "./Provider.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import { providerIdempotencyKey } from "./ProviderIdempotency.ts"
import type { ProviderObject } from "./Schemas.ts"

/** What most operations are: one call on the caller's connected account. */
const onAccount = <A>(call: (account: ConnectedAccount) => Effect.Effect<A, ProviderFailure | AccountAccessRevoked>) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const principal = yield* Principal
    return yield* accounts.use(principal, call)
  })

/** What a write is, beside its call. */
interface Write {
  /** As the idempotency keys know it, e.g. `products.create`. */
  readonly operation: string
  readonly callerKey: string
  readonly parameters: unknown
  readonly action: AuditAction
  readonly targetType: string
}

/** A write: repeated safely under the caller's key, here and at the provider; recorded with its answer. */
const write = (
  { action, callerKey, operation, parameters, targetType }: Write,
  effect: Effect.Effect<
    ProviderObject,
    ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable,
    Accounts | Principal
  >
) =>
  Effect.gen(function* () {
    const principal = yield* Principal
    const idempotency = yield* Idempotency
    const audit = yield* makeAudit
    const { author, environment, organizationId } = principal
    return yield* idempotency.run(
      {
        tenant: principal,
        key: callerKey,
        operation,
        parameters,
        encode: (object: ProviderObject) => object,
        onSuccess: (object) =>
          audit({ organizationId, environment, author, action, targetType, targetId: String(object["id"]) })
      },
      effect
    )
  })

/** A write that is one call. */
const writeOnAccount = (
  details: Write,
  call: (
    account: ConnectedAccount,
    options: { readonly idempotencyKey: string }
  ) => Effect.Effect<ProviderObject, ProviderFailure | AccountAccessRevoked>
) =>
  Effect.flatMap(Principal, (tenant) =>
    write(
      details,
      onAccount((account) => {
        const { callerKey, operation } = details
        return call(account, { idempotencyKey: providerIdempotencyKey({ tenant, account, operation, callerKey }) })
      })
    )
  )

/** Serves `ProductsApi`. */
export const productsHttp = HttpApiBuilder.group(Api, "products", (handlers) =>
  Effect.gen(function* () {
    const provider = yield* Provider
    return handlers
      .handle("create", ({ headers, payload }) =>
        writeOnAccount(
          {
            operation: "products.create",
            callerKey: headers["idempotency-key"],
            parameters: payload,
            action: "product.created",
            targetType: "product"
          },
          (account, options) => provider.createProduct(account, payload, options)
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
        writeOnAccount(
          {
            operation: "prices.create",
            callerKey: headers["idempotency-key"],
            parameters: payload,
            action: "price.created",
            targetType: "price"
          },
          (account, options) => provider.createPrice(account, payload, options)
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
          const callerKey = headers["idempotency-key"]
          return yield* write(
            {
              operation: "checkout.sessions.create",
              callerKey,
              parameters: payload,
              action: "checkout_session.created",
              targetType: "checkout_session"
            },
            sessions.create(principal, payload, callerKey)
          )
        })
      )
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listCheckoutSessions(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrieveCheckoutSession(account, path.id)))
  })
)
