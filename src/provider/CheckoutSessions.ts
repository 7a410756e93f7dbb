import type { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import type { ProviderAccountNotConnected, ServiceUnavailable } from "../Errors.ts"
import type { PrincipalShape } from "../identity/Principal.ts"
import { orUnavailable } from "../storage/Database.ts"
import { Accounts } from "./Accounts.ts"
import type { CreateCheckoutSession } from "./CheckoutSessionsApi.ts"
import { Provider } from "./Provider.ts"
import type { ProviderFailure } from "./ProviderErrors.ts"
import { providerIdempotencyKey } from "./ProviderIdempotency.ts"
import type { ProviderObject } from "./Schemas.ts"
import { makeSoldItemsRepo } from "./SoldItemsRepo.ts"

/** Checkout sessions that this service makes, with the record of what each sells. */
export class CheckoutSessions extends Context.Tag("connected-payments/provider/CheckoutSessions")<
  CheckoutSessions,
  {
    /** Makes a session and remembers what it sells. The same idempotency key with the same parameters makes one. */
    readonly create: (
      principal: PrincipalShape,
      params: CreateCheckoutSession,
      idempotencyKey: string
    ) => Effect.Effect<ProviderObject, ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<CheckoutSessions, never, SqlClient.SqlClient | Provider | Accounts> = Layer.effect(
    CheckoutSessions,
    Effect.gen(function* () {
      const provider = yield* Provider
      const accounts = yield* Accounts
      const soldItems = yield* makeSoldItemsRepo

      const create = Effect.fn("CheckoutSessions.create")(function* (
        principal: PrincipalShape,
        params: CreateCheckoutSession,
        idempotencyKey: string
      ) {
        const created = yield* accounts.use(principal, (account) =>
          provider.createCheckoutSession(account, params, {
            idempotencyKey: providerIdempotencyKey({
              tenant: principal,
              account,
              operation: "checkout.sessions.create",
              callerKey: idempotencyKey
            })
          })
        )
        yield* soldItems.insert(principal, String(created.session["id"]), created.soldItems).pipe(orUnavailable)
        return created.session
      })

      return { create }
    })
  )
}
