import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderPage } from "../Schemas.ts"
import type { ListBalanceTransactions } from "./Api.ts"

/** The provider's operations on balance transactions. */
export interface BalanceTransactionsPort {
  readonly listBalanceTransactions: (
    account: ConnectedAccount,
    params: ListBalanceTransactions
  ) => ProviderCall<ProviderPage>
}
