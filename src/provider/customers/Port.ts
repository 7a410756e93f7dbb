import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { ListCustomers } from "./Api.ts"

/** The provider's operations on customers, with their personal data. */
export interface CustomersPort {
  readonly listCustomers: (account: ConnectedAccount, params: ListCustomers) => ProviderCall<ProviderPage>
  readonly retrieveCustomer: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
}
