import { Effect } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PricesApi } from "./Api.ts"

export const pricesHandlers = Effect.map(Provider, (provider) =>
  handlersOf(PricesApi, {
    create: ({ headers, payload }) =>
      writeOnAccount(
        {
          operation: "prices.create",
          callerKey: headers["idempotency-key"],
          parameters: payload,
          action: "price.created",
          targetType: "price"
        },
        (account, options) => provider.createPrice(account, payload, options)
      ),
    list: ({ urlParams }) => onAccount((account) => provider.listPrices(account, urlParams)),
    get: ({ path }) => onAccount((account) => provider.retrievePrice(account, path.id)),
    update: ({ headers, path, payload }) =>
      writeOnAccount(
        {
          operation: "prices.update",
          callerKey: headers["idempotency-key"],
          parameters: { id: path.id, changes: payload },
          action: "price.updated",
          targetType: "price"
        },
        (account, options) => provider.updatePrice(account, path.id, payload, options)
      )
  })
)

export const pricesHttp = serve(PricesApi, pricesHandlers)
