import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreatePrice, ListPrices } from "./Api.ts"

/** The provider's operations on prices. */
export interface PricesPort {
  readonly createPrice: (
    account: ConnectedAccount,
    params: CreatePrice,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** Deactivates a price; past sales at it are unchanged. */
  readonly deactivatePrice: (
    account: ConnectedAccount,
    id: string,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** With `tiers` expanded. */
  readonly retrievePrice: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  readonly listPrices: (account: ConnectedAccount, params: ListPrices) => ProviderCall<ProviderPage>
}
