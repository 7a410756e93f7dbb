import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { Provider } from "../Provider.ts"
import { BalanceTransactionsApi } from "./Api.ts"

/** What the operations of `BalanceTransactionsApi` do. */
export const balanceTransactionsOperations = Effect.map(Provider, (provider) =>
  operationsOf(BalanceTransactionsApi, {
    list: ({ urlParams }) => onAccount((account) => provider.listBalanceTransactions(account, urlParams))
  })
)

/** Serves `BalanceTransactionsApi`. */
export const balanceTransactionsHttp = HttpApiBuilder.group(
  BaseApi.add(BalanceTransactionsApi),
  "balanceTransactions",
  (handlers) => Effect.map(balanceTransactionsOperations, (operations) => handlers.handle("list", operations.list))
)
