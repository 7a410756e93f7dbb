import { Effect } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount, writeOnAccount } from "../AccountOperations.ts"
import { pageShownTo, shownTo, withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import { RefundsApi } from "./Api.ts"

export const refundsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(RefundsApi, {
    create: ({ headers, payload }) =>
      writeOnAccount(
        {
          operation: "refunds.create",
          callerKey: headers["idempotency-key"],
          parameters: payload,
          action: "refund.created",
          targetType: "refund"
        },
        (account, options) => Effect.map(provider.createRefund(account, payload, options), withoutPayer)
      ),
    list: ({ urlParams }) =>
      onAccount((account) => provider.listRefunds(account, urlParams)).pipe(Effect.flatMap(pageShownTo(withoutPayer))),
    get: ({ path }) =>
      onAccount((account) => provider.retrieveRefund(account, path.id)).pipe(Effect.flatMap(shownTo(withoutPayer)))
  })
)

export const refundsHttp = serve(RefundsApi, refundsHandlers)
