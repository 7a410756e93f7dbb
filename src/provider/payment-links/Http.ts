import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount, write } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PaymentLinksApi } from "./Api.ts"
import { mayHaveLink, PaymentLinks } from "./PaymentLinks.ts"

export const paymentLinksHandlers = Effect.gen(function* () {
  const provider = yield* Provider
  const links = yield* PaymentLinks
  return handlersOf(PaymentLinksApi, {
    create: Effect.fnUntraced(function* ({ headers, payload }) {
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
    }),
    list: ({ urlParams }) => onAccount((account) => provider.listPaymentLinks(account, urlParams)),
    get: ({ path }) => onAccount((account) => provider.retrievePaymentLink(account, path.id)),
    lineItems: ({ path, urlParams }) => onAccount((account) => provider.listLinkLines(account, path.id, urlParams)),
    update: ({ headers, path, payload }) =>
      Effect.flatMap(Principal, (principal) =>
        write(
          {
            operation: "payment_links.update",
            callerKey: headers["idempotency-key"],
            parameters: { id: path.id, changes: payload },
            action: "payment_link.updated",
            targetType: "payment_link"
          },
          (effectKey) => links.update(principal, path.id, payload, effectKey)
        )
      )
  })
})

export const paymentLinksHttp = serve(PaymentLinksApi, paymentLinksHandlers)
