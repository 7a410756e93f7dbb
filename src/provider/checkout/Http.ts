import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, write, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PaymentLinksApi } from "../payment-links/Api.ts"
import { mayHaveLink, PaymentLinks } from "../payment-links/PaymentLinks.ts"
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
            // A subscription-mode session is what a recurring price needs (contract 2.5)
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

/** Serves `PaymentLinksApi`. */
export const paymentLinksHttp = HttpApiBuilder.group(BaseApi.add(PaymentLinksApi), "paymentLinks", (handlers) =>
  Effect.gen(function* () {
    const provider = yield* Provider
    const links = yield* PaymentLinks
    return handlers
      .handle(
        "create",
        Effect.fnUntraced(function* ({ headers, payload }) {
          const principal = yield* Principal
          return yield* write(
            {
              operation: "payment_links.create",
              callerKey: headers["idempotency-key"],
              parameters: payload,
              action: "payment_link.created",
              targetType: "payment_link",
              mayReplay: mayHaveLink(principal)
            },
            (effectKey) => links.create(principal, payload, effectKey)
          )
        })
      )
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listPaymentLinks(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrievePaymentLink(account, path.id)))
      .handle("update", ({ headers, path, payload }) =>
        writeOnAccount(
          {
            operation: "payment_links.update",
            callerKey: headers["idempotency-key"],
            parameters: { id: path.id, changes: payload },
            action: "payment_link.updated",
            targetType: "payment_link"
          },
          (account, options) => provider.updatePaymentLink(account, path.id, payload, options)
        )
      )
  })
)
