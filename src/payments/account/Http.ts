import { handlersOf } from "../../platform/kit/Handlers.ts"
import { listing, onAccount, reading } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { AccountApi, BalanceTransactionsApi, PayoutsApi } from "./Api.ts"

export const accountHandlers = handlersOf(AccountApi, Provider, (provider) => ({
  get: () => onAccount(provider.retrieveAccount),
  balance: () => onAccount(provider.retrieveBalance),
  payoutSettings: () => onAccount(provider.retrievePayoutSettings)
}))

export const balanceTransactionsHandlers = handlersOf(BalanceTransactionsApi, Provider, (provider) => ({
  list: listing(provider.listBalanceTransactions)
}))

export const payoutsHandlers = handlersOf(PayoutsApi, Provider, (provider) =>
  reading(provider.listPayouts, provider.retrievePayout)
)
