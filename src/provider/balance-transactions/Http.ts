import { Effect } from "effect"
import { operationsOf, serve } from "../../kit/Operations.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { BalanceTransactionsApi } from "./Api.ts"

export const balanceTransactionsOperations = Effect.map(Provider, (provider) =>
  operationsOf(BalanceTransactionsApi, {
    list: ({ urlParams }) => onAccount((account) => provider.listBalanceTransactions(account, urlParams))
  })
)

export const balanceTransactionsHttp = serve(BalanceTransactionsApi, balanceTransactionsOperations)
