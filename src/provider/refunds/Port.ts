import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { CreateRefund } from "./Api.ts"

/** The provider's operations on refunds. */
export interface RefundsPort {
  readonly createRefund: (
    account: ConnectedAccount,
    params: CreateRefund,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
}
