import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, write } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { requireSubscriptions } from "../prices/Prices.ts"
import { CheckoutSessionsApi } from "./Api.ts"
import { CheckoutSessions } from "./CheckoutSessions.ts"

/** Serves `CheckoutSessionsApi`. */
export const checkoutSessionsHttp = HttpApiBuilder.group(
  BaseApi.add(CheckoutSessionsApi),
  "checkoutSessions",
  (handlers) =>
    Effect.gen(function* () {
      const provider = yield* Provider
      const sessions = yield* CheckoutSessions
      return handlers
        .handle(
          "create",
          Effect.fnUntraced(function* ({ headers, payload }) {
            const principal = yield* Principal
            // A recurring price needs this mode, and its permission (contract 2.5)
            yield* payload.mode === "subscription" ? requireSubscriptions(principal) : Effect.void
            return yield* write(
              {
                operation: "checkout.sessions.create",
                callerKey: headers["idempotency-key"],
                parameters: payload,
                action: "checkout_session.created",
                targetType: "checkout_session"
              },
              (effectKey) => sessions.create(principal, payload, effectKey)
            )
          })
        )
        .handle("list", ({ urlParams }) => onAccount((account) => provider.listCheckoutSessions(account, urlParams)))
        .handle("get", ({ path }) => onAccount((account) => provider.retrieveCheckoutSession(account, path.id)))
    })
)
