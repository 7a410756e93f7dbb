import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { PermissionDenied } from "../../platform/errors/Errors.ts"
import { handlersOf } from "../../platform/kit/Handlers.ts"
import { onAccount } from "../AccountOperations.ts"
import { CheckoutSessions } from "../checkout-sessions/CheckoutSessions.ts"
import { pageShownTo, withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import { withSales } from "../payments/Http.ts"
import type { ProviderObject } from "../Schemas.ts"
import { SearchApi } from "./Api.ts"

/** The provider's maximum for a page. */
const limit = 100

/** How many sessions of an order are read at the provider at a time. */
const concurrency = 5

export const searchHandlers = handlersOf(
  SearchApi,
  Effect.all([Provider, CheckoutSessions]),
  ([provider, sessions]) => {
    const ofOrder = Effect.fnUntraced(function* (reference: string) {
      const ids = yield* sessions.sessionsOf(yield* Principal, reference)
      const found = yield* onAccount((account) =>
        Effect.forEach(
          ids,
          (id) =>
            provider.retrieveCheckoutSession(account, id).pipe(
              Effect.map((session): ReadonlyArray<ProviderObject> => [session]),
              // Recorded under an account that has been replaced since
              Effect.catchTag("ProviderObjectNotFound", () => Effect.succeed([]))
            ),
          { concurrency }
        )
      )
      return { data: found.flat(), has_more: false }
    })

    const ofPayer = Effect.fnUntraced(function* (email: string) {
      const { permissions } = yield* Principal
      return permissions.has("customers:read")
        ? yield* onAccount((account) => provider.findCheckoutSessions(account, { email, limit }))
        : yield* new PermissionDenied({
            message: "A search by e-mail address also needs the permission customers:read."
          })
    })

    const ofAmount = (amount: number, currency: string | undefined) =>
      Effect.flatMap(
        onAccount((account) =>
          provider.searchPaymentIntents(account, { amount, limit, ...(currency === undefined ? {} : { currency }) })
        ),
        withSales(sessions)
      )

    return {
      payments: ({ payload: { amount = 0, client_reference_id: reference, currency, email } }) =>
        Effect.flatMap(
          reference !== undefined
            ? ofOrder(reference)
            : email !== undefined
              ? ofPayer(email)
              : ofAmount(amount, currency),
          pageShownTo(withoutPayer)
        )
    }
  }
)
