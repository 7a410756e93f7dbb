import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf } from "../../platform/kit/Handlers.ts"
import { onAccount, reading, write, writeOnAccount } from "../AccountOperations.ts"
import { withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import { requireSubscriptions } from "../prices/Prices.ts"
import { CheckoutSessionsApi } from "./Api.ts"
import { CheckoutSessions } from "./CheckoutSessions.ts"

export const checkoutSessionsHandlers = handlersOf(
  CheckoutSessionsApi,
  Effect.all([Provider, CheckoutSessions]),
  ([provider, sessions]) => ({
    ...reading(provider.listCheckoutSessions, provider.retrieveCheckoutSession, withoutPayer),
    create: Effect.fnUntraced(function* (request) {
      const principal = yield* Principal
      const { payload } = request
      // Only this mode sells recurring prices, which need a permission (contract 2.5)
      yield* payload.mode === "subscription" ? requireSubscriptions(principal) : Effect.void
      // The payer is removed for everyone, since a repeat with another API key gets the same answer
      return yield* write(
        { operation: "checkout.sessions.create", action: "checkout_session.created" },
        request,
        (keyFor) => Effect.map(sessions.create(principal, payload, keyFor), withoutPayer)
      )
    }),
    lineItems: ({ path, urlParams }) =>
      onAccount((account) => provider.listSessionLines(account, path.id, urlParams), { path }),
    expire: (request) =>
      writeOnAccount(
        { operation: "checkout.sessions.expire", action: "checkout_session.expired" },
        request,
        (account, options) =>
          Effect.map(provider.expireCheckoutSession(account, request.path.id, options), withoutPayer)
      )
  })
)
