import { Effect } from "effect"
import { handlersOf } from "../../kit/Handlers.ts"
import { listing, onAccount, reading } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { AccountApi, BalanceTransactionsApi, PayoutsApi } from "./Api.ts"

export const accountHandlers = Effect.map(Provider, (provider) =>
  handlersOf(AccountApi, {
    get: () => onAccount(provider.retrieveAccount),
    balance: () => onAccount(provider.retrieveBalance),
    payoutSettings: () => onAccount(provider.retrievePayoutSettings)
  })
)

export const balanceTransactionsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(BalanceTransactionsApi, { list: listing(provider.listBalanceTransactions) })
)

export const payoutsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(PayoutsApi, reading(provider.listPayouts, provider.retrievePayout))
)
