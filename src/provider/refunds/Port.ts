import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreateRefund, ListRefunds } from "./Api.ts"

/** The provider's operations on refunds. */
export interface RefundsPort {
  readonly createRefund: (
    account: ConnectedAccount,
    params: CreateRefund,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  readonly listRefunds: (account: ConnectedAccount, params: ListRefunds) => ProviderCall<ProviderPage>
  readonly retrieveRefund: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
}
