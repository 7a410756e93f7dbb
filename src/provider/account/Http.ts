import { Effect } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { AccountApi } from "./Api.ts"

export const accountHandlers = Effect.map(Provider, (provider) =>
  handlersOf(AccountApi, {
    get: () => onAccount(provider.retrieveAccount),
    balance: () => onAccount(provider.retrieveBalance),
    payoutSettings: () => onAccount(provider.retrievePayoutSettings)
  })
)

export const accountHttp = serve(AccountApi, accountHandlers)
