import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreatePrice, ListPrices, UpdatePrice } from "./Api.ts"

/** The provider's operations on prices, which it returns with their `tiers`. */
export interface PricesPort {
  readonly createPrice: (
    account: ConnectedAccount,
    params: CreatePrice,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** Absent fields stay as they are; past sales at a price that is deactivated are unchanged. */
  readonly updatePrice: (
    account: ConnectedAccount,
    id: string,
    changes: UpdatePrice,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  readonly retrievePrice: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  readonly listPrices: (account: ConnectedAccount, params: ListPrices) => ProviderCall<ProviderPage>
}
