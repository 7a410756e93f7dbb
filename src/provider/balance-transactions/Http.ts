import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { BalanceTransactionsApi } from "./Api.ts"

/** Serves `BalanceTransactionsApi`. */
export const balanceTransactionsHttp = HttpApiBuilder.group(
  BaseApi.add(BalanceTransactionsApi),
  "balanceTransactions",
  (handlers) =>
    Effect.map(Provider, (provider) =>
      handlers.handle("list", ({ urlParams }) =>
        onAccount((account) => provider.listBalanceTransactions(account, urlParams))
      )
    )
)
