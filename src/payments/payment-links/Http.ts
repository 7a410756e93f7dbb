import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf } from "../../platform/kit/Handlers.ts"
import { onAccount, reading, write } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PaymentLinksApi } from "./Api.ts"
import { makePaymentLinks, mayHaveLink } from "./PaymentLinks.ts"

export const paymentLinksHandlers = handlersOf(
  PaymentLinksApi,
  Effect.all([Provider, makePaymentLinks]),
  ([provider, links]) => ({
    ...reading(provider.listPaymentLinks, provider.retrievePaymentLink),
    create: Effect.fnUntraced(function* (request) {
      const principal = yield* Principal
      const details = { operation: "payment_links.create", action: "payment_link.created" } as const
      return yield* write({ ...details, mayReplay: mayHaveLink(principal) }, request, (keyFor) =>
        links.create(principal, request.payload, keyFor)
      )
    }),
    lineItems: ({ path, urlParams }) =>
      onAccount((account) => provider.listLinkLines(account, path.id, urlParams), { path }),
    update: (request) =>
      write({ operation: "payment_links.update", action: "payment_link.updated" }, request, (keyFor) =>
        Effect.flatMap(Principal, (principal) => links.update(principal, request.path.id, request.payload, keyFor))
      )
  })
)
