import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { ListSubscriptions } from "./Api.ts"

/** The provider's operations on subscriptions. */
export interface SubscriptionsPort {
  /** Without `status`, canceled subscriptions are left out. */
  readonly listSubscriptions: (account: ConnectedAccount, params: ListSubscriptions) => ProviderCall<ProviderPage>
  readonly retrieveSubscription: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  /**
   * Cancels at once. Returns a subscription that is already canceled as it is, so that a repeat is safe without a key.
   */
  readonly cancelSubscription: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
}
