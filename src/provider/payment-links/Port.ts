import type { SoldItems, SubscriptionTerms } from "../checkout/Port.ts"
import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreatePaymentLink, ListPaymentLinks, UpdatePaymentLink } from "./Api.ts"

/** The parameters of a new payment link. */
export type NewPaymentLink = CreatePaymentLink & SubscriptionTerms & { readonly mode: "payment" | "subscription" }

/** The provider's operations on payment links, which it returns with their `line_items`. */
export interface PaymentLinksPort {
  /** Returns the link, and what it sells. */
  readonly createPaymentLink: (
    account: ConnectedAccount,
    params: NewPaymentLink,
    options: WriteOptions
  ) => ProviderCall<{ readonly link: ProviderObject; readonly soldItems: SoldItems }>
  readonly updatePaymentLink: (
    account: ConnectedAccount,
    id: string,
    changes: UpdatePaymentLink,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  readonly retrievePaymentLink: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  readonly listPaymentLinks: (account: ConnectedAccount, params: ListPaymentLinks) => ProviderCall<ProviderPage>
}
