import { Context } from "effect"
import type { SoldItems } from "../events/stripe/Translate.ts"
import type { OwnReturnUrls } from "../identity/return-urls/ReturnUrls.ts"
import type { ListBalanceTransactions, ListPayouts } from "./account/Api.ts"
import type { CreateCheckoutSession, ListCheckoutSessions } from "./checkout/Api.ts"
import type { SessionCollection } from "./checkout/Collection.ts"
import type { ConnectingPort } from "./connecting/Port.ts"
import type { ListLineItems } from "./Endpoints.ts"
import type { NotificationsPort } from "./notifications/Port.ts"
import type {
  ChangeObject,
  ConnectedAccount,
  CreateObject,
  ListObjects,
  ProviderCall,
  RetrieveObject,
  WriteOptions
} from "./ProviderCall.ts"
import type { CreatePaymentLink, ListPaymentLinks, UpdatePaymentLink } from "./payment-links/Api.ts"
import type { CreateRefund, ListOfPayments, ListPayments } from "./payments/Api.ts"
import type { CreatePrice, ListPrices, UpdatePrice } from "./prices/Api.ts"
import type { CreateProduct, ListProducts, UpdateProduct } from "./products/Api.ts"
import type { CreatePromotionCode, ListPromotionCodes, UpdatePromotionCode } from "./promotion-codes/Api.ts"
import type { ProviderObject, ProviderPage } from "./Schemas.ts"
import type { ListSubscriptions, UpdateSubscription } from "./subscriptions/Api.ts"

export type { SoldItems }

/** The provider's operations on the connected account itself, and on its money. */
export interface AccountPort {
  /** Without the personal data of the account's owner. */
  readonly retrieveAccount: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  readonly retrieveBalance: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  /** Payout schedule and destinations. Destinations are masked, or null if the platform may not read them. */
  readonly retrievePayoutSettings: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  readonly listBalanceTransactions: ListObjects<ListBalanceTransactions>
  readonly listPayouts: ListObjects<ListPayouts>
  readonly retrievePayout: RetrieveObject
}

/** A change of a product. A new default price is created first, since the provider takes only its id here. */
export type ProductChanges = Omit<UpdateProduct, "default_price_data">

/** The provider's operations on products. */
export interface ProductsPort {
  readonly createProduct: CreateObject<CreateProduct>
  /** Absent fields stay as they are; an empty list or text removes the current value. */
  readonly updateProduct: ChangeObject<ProductChanges>
  /** With `default_price` as an object, as in the answers to changes and in lists. */
  readonly retrieveProduct: RetrieveObject
  readonly listProducts: ListObjects<ListProducts>
}

/** The provider's operations on prices, which it returns with their `tiers`. */
export interface PricesPort {
  readonly createPrice: CreateObject<CreatePrice>
  /** Absent fields stay as they are; past sales at a price that is deactivated are unchanged. */
  readonly updatePrice: ChangeObject<UpdatePrice>
  readonly retrievePrice: RetrieveObject
  readonly listPrices: ListObjects<ListPrices>
}

/** The terms that a subscription gets from its prices, in addition to the caller's parameters. */
export interface SubscriptionTerms {
  /** Days before a new subscription's first charge; null for none. */
  readonly trialPeriodDays: number | null
}

export interface SessionPage {
  /** The session's metadata `svc_checkout_page`. */
  readonly id: string
  readonly collect: SessionCollection
}

export type NewCheckoutSession = CreateCheckoutSession &
  SubscriptionTerms & {
    /** The organization's own pages that payers return to; null for the operator's. */
    readonly returnUrls: OwnReturnUrls
    /** Absent if it is created by a request to the API. */
    readonly page?: SessionPage
  }

/** A page of an object's lines, in their order. */
type ListLines = (account: ConnectedAccount, id: string, params: ListLineItems) => ProviderCall<ProviderPage>

/** The provider's operations on checkout sessions, which are returned without their items. */
export interface CheckoutSessionsPort {
  /** Also returns the items that the session sells, according to the provider. */
  readonly createCheckoutSession: CreateObject<
    NewCheckoutSession,
    { readonly session: ProviderObject; readonly soldItems: SoldItems }
  >
  readonly retrieveCheckoutSession: RetrieveObject
  readonly listCheckoutSessions: ListObjects<ListCheckoutSessions>
  /** Expires an open session; returns an already expired one unchanged. */
  readonly expireCheckoutSession: (
    account: ConnectedAccount,
    id: string,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  readonly listSessionLines: ListLines
  /** The prices and products that a session sells, read from all of its lines. */
  readonly listSessionItems: (account: ConnectedAccount, id: string) => ProviderCall<SoldItems>
}

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
  readonly createPaymentLink: CreateObject<
    NewPaymentLink,
    { readonly link: ProviderObject; readonly soldItems: SoldItems }
  >
  /** Absent fields and unnamed metadata keys are unchanged. */
  readonly updatePaymentLink: ChangeObject<UpdatePaymentLink>
  /** Sets the metadata of a link's future payments or subscriptions. */
  readonly carryLinkMetadata: ChangeObject<CarriedMetadata>
  readonly retrievePaymentLink: RetrieveObject
  readonly listPaymentLinks: ListObjects<ListPaymentLinks>
  readonly listLinkLines: ListLines
}

/** The parameters of a new coupon, whose id the service chooses. */
export type NewCoupon = Pick<CreatePromotionCode, "discount" | "duration" | "duration_in_months" | "products"> & {
  readonly id: string
}

/** The parameters of a new promotion code for an existing coupon. */
export type NewPromotionCode = Pick<CreatePromotionCode, "code" | "max_redemptions" | "expires_at" | "metadata"> & {
  readonly coupon: string
}

/** The provider's operations on coupons and promotion codes; it returns codes with their coupon and its products. */
export interface PromotionCodesPort {
  readonly createCoupon: CreateObject<NewCoupon>
  /** Deletes a coupon, which invalidates its promotion codes. */
  readonly deleteCoupon: (account: ConnectedAccount, id: string) => ProviderCall<void>
  readonly createPromotionCode: CreateObject<NewPromotionCode>
  readonly updatePromotionCode: ChangeObject<UpdatePromotionCode>
  readonly retrievePromotionCode: RetrieveObject
  /** `code` matches as payers enter it, in upper or lower case. */
  readonly listPromotionCodes: ListObjects<ListPromotionCodes & { readonly code?: string }>
}

/** The provider's operations on payments: charges and payment intents, their refunds and disputes, and their payers. */
export interface PaymentsPort {
  readonly listCharges: ListObjects<ListPayments>
  readonly retrieveCharge: RetrieveObject
  /**
   * Whether the account has a charge that succeeded and was captured; failed and pending charges do not count. Decides
   * whether the account's first payment here is a milestone.
   */
  readonly hasCharges: (account: ConnectedAccount) => ProviderCall<boolean>
  readonly listPaymentIntents: ListObjects<ListPayments>
  readonly retrievePaymentIntent: RetrieveObject
  readonly createRefund: CreateObject<CreateRefund>
  readonly listRefunds: ListObjects<ListOfPayments>
  readonly retrieveRefund: RetrieveObject
  readonly listDisputes: ListObjects<ListOfPayments>
  readonly retrieveDispute: RetrieveObject
  /** With their personal data. */
  readonly listCustomers: ListObjects<ListPayments>
  readonly retrieveCustomer: RetrieveObject
}

/** The provider's operations on subscriptions. */
export interface SubscriptionsPort {
  /** Without `status`, canceled subscriptions are left out. */
  readonly listSubscriptions: ListObjects<ListSubscriptions>
  readonly retrieveSubscription: RetrieveObject
  /** Cancels at the end of the period, or undoes that. Refuses a subscription that has ended. */
  readonly updateSubscription: ChangeObject<UpdateSubscription>
  /** Cancels at once. Idempotent without a key: returns an already canceled subscription as it is. */
  readonly cancelSubscription: RetrieveObject
}

/** Every provider operation that the service uses: the union of all resources' ports. */
export interface ProviderShape
  extends AccountPort,
    CheckoutSessionsPort,
    ConnectingPort,
    NotificationsPort,
    PaymentLinksPort,
    PaymentsPort,
    PricesPort,
    ProductsPort,
    PromotionCodesPort,
    SubscriptionsPort {}

/**
 * The payment provider, as the service uses it. Replace this layer to run on another provider or on your own test
 * double: parameters and answers are JSON with the provider's names, errors are the documented ones.
 */
export class Provider extends Context.Tag("connected-payments/payments/Provider")<Provider, ProviderShape>() {}
