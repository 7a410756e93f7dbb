import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { ListPayments } from "./Api.ts"

/** The provider's operations on payments: charges and payment intents. */
export interface PaymentsPort {
  readonly listCharges: (account: ConnectedAccount, params: ListPayments) => ProviderCall<ProviderPage>
  readonly retrieveCharge: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  /**
   * Whether the account has a charge that succeeded and was captured; failed and pending charges do not count. Decides
   * whether the account's first payment here is a milestone.
   */
  readonly hasCharges: (account: ConnectedAccount) => ProviderCall<boolean>
  readonly listPaymentIntents: (account: ConnectedAccount, params: ListPayments) => ProviderCall<ProviderPage>
  readonly retrievePaymentIntent: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
}
