import { Effect } from "effect"
import { operationsOf, serve } from "../../kit/Operations.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PayoutsApi } from "./Api.ts"

export const payoutsOperations = Effect.map(Provider, (provider) =>
  operationsOf(PayoutsApi, {
    list: ({ urlParams }) => onAccount((account) => provider.listPayouts(account, urlParams)),
    get: ({ path }) => onAccount((account) => provider.retrievePayout(account, path.id))
  })
)

export const payoutsHttp = serve(PayoutsApi, payoutsOperations)
