import { Effect } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PayoutsApi } from "./Api.ts"

export const payoutsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(PayoutsApi, {
    list: ({ urlParams }) => onAccount((account) => provider.listPayouts(account, urlParams)),
    get: ({ path }) => onAccount((account) => provider.retrievePayout(account, path.id))
  })
)

export const payoutsHttp = serve(PayoutsApi, payoutsHandlers)
