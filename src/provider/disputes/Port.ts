import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { ListDisputes } from "./Api.ts"

/** The provider's operations on disputes. */
export interface DisputesPort {
  readonly listDisputes: (account: ConnectedAccount, params: ListDisputes) => ProviderCall<ProviderPage>
  readonly retrieveDispute: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
}
