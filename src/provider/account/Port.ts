import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderObject } from "../Schemas.ts"

/** The provider's operations on the connected account itself. */
export interface AccountPort {
  /** Without the personal data of the account's owner. */
  readonly retrieveAccount: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  readonly retrieveBalance: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  /** Payout schedule and destinations. Destinations are masked, or null if the platform may not read them. */
  readonly retrievePayoutSettings: (account: ConnectedAccount) => ProviderCall<ProviderObject>
}
