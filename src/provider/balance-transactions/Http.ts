import { Effect } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { BalanceTransactionsApi } from "./Api.ts"

export const balanceTransactionsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(BalanceTransactionsApi, {
    list: ({ urlParams }) => onAccount((account) => provider.listBalanceTransactions(account, urlParams))
  })
)

export const balanceTransactionsHttp = serve(BalanceTransactionsApi, balanceTransactionsHandlers)
