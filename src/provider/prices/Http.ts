import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PricesApi } from "./Api.ts"

/** Serves `PricesApi`. */
export const pricesHttp = HttpApiBuilder.group(BaseApi.add(PricesApi), "prices", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers
      .handle("create", ({ headers, payload }) =>
        writeOnAccount(
          {
            operation: "prices.create",
            callerKey: headers["idempotency-key"],
            parameters: payload,
            action: "price.created",
            targetType: "price"
          },
          (account, options) => provider.createPrice(account, payload, options)
        )
      )
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listPrices(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrievePrice(account, path.id)))
  )
)
