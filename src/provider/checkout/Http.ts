import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount, write, writeOnAccount } from "../AccountOperations.ts"
import { pageShownTo, shownTo, withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import { requireSubscriptions } from "../prices/Prices.ts"
import { CheckoutSessionsApi } from "./Api.ts"
import { CheckoutSessions } from "./CheckoutSessions.ts"

export const checkoutSessionsHandlers = Effect.gen(function* () {
  const provider = yield* Provider
  const sessions = yield* CheckoutSessions
  return handlersOf(CheckoutSessionsApi, {
    create: Effect.fnUntraced(function* ({ headers, payload }) {
      const principal = yield* Principal
      // Only this mode sells recurring prices, which need a permission (contract 2.5)
      yield* payload.mode === "subscription" ? requireSubscriptions(principal) : Effect.void
      return yield* write(
        {
          operation: "checkout.sessions.create",
          callerKey: headers["idempotency-key"],
          parameters: payload,
          action: "checkout_session.created",
          targetType: "checkout_session"
        },
        // The payer is removed for everyone, since a repeat with another API key gets the same answer
        (effectKey) => Effect.map(sessions.create(principal, payload, effectKey), withoutPayer)
      )
    }),
    list: ({ urlParams }) =>
      onAccount((account) => provider.listCheckoutSessions(account, urlParams)).pipe(
        Effect.flatMap(pageShownTo(withoutPayer))
      ),
    get: ({ path }) =>
      onAccount((account) => provider.retrieveCheckoutSession(account, path.id)).pipe(
        Effect.flatMap(shownTo(withoutPayer))
      ),
    lineItems: ({ path, urlParams }) => onAccount((account) => provider.listSessionLines(account, path.id, urlParams)),
    expire: ({ headers, path }) =>
      writeOnAccount(
        {
          operation: "checkout.sessions.expire",
          callerKey: headers["idempotency-key"],
          parameters: { id: path.id },
          action: "checkout_session.expired",
          targetType: "checkout_session"
        },
        (account, options) => Effect.map(provider.expireCheckoutSession(account, path.id, options), withoutPayer)
      )
  })
})

export const checkoutSessionsHttp = serve(CheckoutSessionsApi, checkoutSessionsHandlers)
