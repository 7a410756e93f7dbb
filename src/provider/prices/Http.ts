import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, writeOnAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { Provider } from "../Provider.ts"
import { PricesApi } from "./Api.ts"

/** What the operations of `PricesApi` do. */
export const pricesOperations = Effect.map(Provider, (provider) =>
  operationsOf(PricesApi, {
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

/** Serves `PricesApi`. */
export const pricesHttp = HttpApiBuilder.group(BaseApi.add(PricesApi), "prices", (handlers) =>
  Effect.map(pricesOperations, (operations) =>
    handlers
      .handle("create", operations.create)
      .handle("list", operations.list)
      .handle("get", operations.get)
      .handle("update", operations.update)
  )
)
