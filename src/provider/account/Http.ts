import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { Provider } from "../Provider.ts"
import { AccountApi } from "./Api.ts"

/** What the operations of `AccountApi` do. */
export const accountOperations = Effect.map(Provider, (provider) =>
  operationsOf(AccountApi, {
    get: () => onAccount(provider.retrieveAccount),
    balance: () => onAccount(provider.retrieveBalance),
    payoutSettings: () => onAccount(provider.retrievePayoutSettings)
  })
)

/** Serves `AccountApi`. */
export const accountHttp = HttpApiBuilder.group(BaseApi.add(AccountApi), "account", (handlers) =>
  Effect.map(accountOperations, (operations) =>
    handlers
      .handle("get", operations.get)
      .handle("balance", operations.balance)
      .handle("payoutSettings", operations.payoutSettings)
  )
)
