import type { ListLineItems } from "../checkout/Api.ts"
import type { SoldItems, SubscriptionTerms } from "../checkout/Port.ts"
import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreatePaymentLink, ListPaymentLinks, UpdatePaymentLink } from "./Api.ts"

export type NewPaymentLink = CreatePaymentLink & SubscriptionTerms & { readonly mode: "payment" | "subscription" }

/** The metadata that a link's payments or subscriptions get from it. */
export interface CarriedMetadata {
  readonly mode: "payment" | "subscription"
  /** Replaces the current metadata. */
  readonly metadata: Readonly<Record<string, string>>
}

/** The provider's operations on payment links, which it returns with all of their `line_items`. */
export interface PaymentLinksPort {
  /** Returns the link and the items it sells. */
  readonly createPaymentLink: (
    account: ConnectedAccount,
    params: NewPaymentLink,
    options: WriteOptions
  ) => ProviderCall<{ readonly link: ProviderObject; readonly soldItems: SoldItems }>
  /** Absent fields and unnamed metadata keys are unchanged. */
  readonly updatePaymentLink: (
    account: ConnectedAccount,
    id: string,
    changes: UpdatePaymentLink,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** Sets the metadata of a link's future payments or subscriptions. */
  readonly carryLinkMetadata: (
    account: ConnectedAccount,
    id: string,
    carried: CarriedMetadata,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  readonly retrievePaymentLink: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  readonly listPaymentLinks: (account: ConnectedAccount, params: ListPaymentLinks) => ProviderCall<ProviderPage>
  /** A page of a link's lines, in their order. */
  readonly listLinkLines: (account: ConnectedAccount, id: string, params: ListLineItems) => ProviderCall<ProviderPage>
}
