import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { AccountApi } from "./Api.ts"
import { PayoutsApi } from "./PayoutsApi.ts"
import { TransactionsApi } from "./TransactionsApi.ts"

/** Serves `AccountApi`. */
export const accountHttp = HttpApiBuilder.group(BaseApi.add(AccountApi), "account", (handlers) =>
  Effect.gen(function* () {
    const provider = yield* Provider
    return handlers
      .handle("get", () => onAccount(provider.retrieveAccount))
      .handle("balance", () => onAccount(provider.retrieveBalance))
      .handle("payoutSettings", () => onAccount(provider.retrievePayoutSettings))
  })
)

/** Serves `TransactionsApi`. */
export const balanceTransactionsHttp = HttpApiBuilder.group(
  BaseApi.add(TransactionsApi),
  "balanceTransactions",
  (handlers) =>
    Effect.map(Provider, (provider) =>
      handlers.handle("list", ({ urlParams }) =>
        onAccount((account) => provider.listBalanceTransactions(account, urlParams))
      )
    )
)

/** Serves `PayoutsApi`. */
export const payoutsHttp = HttpApiBuilder.group(BaseApi.add(PayoutsApi), "payouts", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listPayouts(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrievePayout(account, path.id)))
  )
)
