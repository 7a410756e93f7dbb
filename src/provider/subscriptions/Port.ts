import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { ListSubscriptions, UpdateSubscription } from "./Api.ts"

/** The provider's operations on subscriptions. */
export interface SubscriptionsPort {
  /** Without `status`, canceled subscriptions are left out. */
  readonly listSubscriptions: (account: ConnectedAccount, params: ListSubscriptions) => ProviderCall<ProviderPage>
  readonly retrieveSubscription: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  /** Cancels at the end of the period, or undoes that. Refuses a subscription that has ended. */
  readonly updateSubscription: (
    account: ConnectedAccount,
    id: string,
    params: UpdateSubscription,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** Cancels at once. Idempotent without a key: returns an already canceled subscription as it is. */
  readonly cancelSubscription: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
}
