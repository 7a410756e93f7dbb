import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderObject } from "../Schemas.ts"

/** The provider's operations on the connected account itself. */
export interface AccountPort {
  /** Without the personal data of the account's owner. */
  readonly retrieveAccount: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  readonly retrieveBalance: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  /** When and where the account is paid out. Destinations are masked, or null if the platform does not control the account. */
  readonly retrievePayoutSettings: (account: ConnectedAccount) => ProviderCall<ProviderObject>
}
