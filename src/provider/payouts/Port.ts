import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { ListPayouts } from "./Api.ts"

/** The provider's operations on payouts. */
export interface PayoutsPort {
  readonly listPayouts: (account: ConnectedAccount, params: ListPayouts) => ProviderCall<ProviderPage>
  readonly retrievePayout: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
}
