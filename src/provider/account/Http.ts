import { Effect } from "effect"
import { operationsOf, serve } from "../../kit/Operations.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { AccountApi } from "./Api.ts"

export const accountOperations = Effect.map(Provider, (provider) =>
  operationsOf(AccountApi, {
    get: () => onAccount(provider.retrieveAccount),
    balance: () => onAccount(provider.retrieveBalance),
    payoutSettings: () => onAccount(provider.retrievePayoutSettings)
  })
)

export const accountHttp = serve(AccountApi, accountOperations)
