import { Context, type Effect } from "effect"
import type { SignatureInvalid } from "../Errors.ts"
import type { Environment } from "../events/Environment.ts"
import type { ListPayouts } from "./account/PayoutsApi.ts"
import type { ListBalanceTransactions } from "./account/TransactionsApi.ts"
import type { CreateCheckoutSession, ListCheckoutSessions } from "./checkout/Api.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import type { CreatePaymentLink, ListPaymentLinks, UpdatePaymentLink } from "./payment-links/Api.ts"
import type { ListPayments } from "./payments/Api.ts"
import type { CreateRefund } from "./payments/RefundsApi.ts"
import type { CreatePrice, ListPrices } from "./prices/Api.ts"
import type { CreateProduct, ListProducts, UpdateProduct } from "./products/Api.ts"
import type { CreatePromotionCode, ListPromotionCodes, UpdatePromotionCode } from "./promotion-codes/Api.ts"
import type { ProviderObject, ProviderPage } from "./Schemas.ts"
import type { ListSubscriptions } from "./subscriptions/Api.ts"

/** The account that a call acts on, always resolved by the service from the authorized organization. */
export interface ConnectedAccount {
  readonly environment: Environment
  readonly accountId: string
}

/** A notification whose signature and time were found good under a secret of this environment. */
export interface VerifiedNotification {
  readonly environment: Environment
  /** The parsed JSON, not looked into yet; undefined where the body is none. */
  readonly event: unknown
}

/** A write's key at the provider; the same key with the same parameters makes one object. */
export interface WriteOptions {
  readonly idempotencyKey: string
}

type Call<A> = Effect.Effect<A, ProviderFailure | AccountAccessRevoked>

/**
 * The payment provider, as the service uses it. Replace this layer to run on another provider or a test double of your
 * own: parameters and answers are JSON in the provider's names, errors are the documented ones.
 */
export class Provider extends Context.Tag("connected-payments/provider/Provider")<
  Provider,
  {
    /** Without the personal data that the provider has of the account's owner. */
    readonly retrieveAccount: (account: ConnectedAccount) => Call<ProviderObject>
    /**
     * Whether a charge of the account has succeeded and was captured already: decides whether its first payment here is a
     * milestone. Charges that failed or are pending are none.
     */
    readonly hasCharges: (account: ConnectedAccount) => Call<boolean>
    readonly retrieveBalance: (account: ConnectedAccount) => Call<ProviderObject>
    /** When and where the account is paid out; destinations masked, null where the account is not ours to control. */
    readonly retrievePayoutSettings: (account: ConnectedAccount) => Call<ProviderObject>

    readonly listBalanceTransactions: (account: ConnectedAccount, params: ListBalanceTransactions) => Call<ProviderPage>
    readonly listCharges: (account: ConnectedAccount, params: ListPayments) => Call<ProviderPage>
    readonly retrieveCharge: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly listPaymentIntents: (account: ConnectedAccount, params: ListPayments) => Call<ProviderPage>
    readonly retrievePaymentIntent: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly createRefund: (
      account: ConnectedAccount,
      params: CreateRefund,
      options: WriteOptions
    ) => Call<ProviderObject>
    readonly listPayouts: (account: ConnectedAccount, params: ListPayouts) => Call<ProviderPage>
    readonly retrievePayout: (account: ConnectedAccount, id: string) => Call<ProviderObject>

    /** Without `status`, canceled subscriptions are left out. */
    readonly listSubscriptions: (account: ConnectedAccount, params: ListSubscriptions) => Call<ProviderPage>
    readonly retrieveSubscription: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    /** Cancels at once. A subscription that is canceled already is answered as it is, so a repeat is safe without a key. */
    readonly cancelSubscription: (account: ConnectedAccount, id: string) => Call<ProviderObject>

    readonly createProduct: (
      account: ConnectedAccount,
      params: CreateProduct,
      options: WriteOptions
    ) => Call<ProviderObject>
    /** What is absent stays; an empty list or text removes what was there. */
    readonly updateProduct: (
      account: ConnectedAccount,
      id: string,
      changes: ProductChanges,
      options: WriteOptions
    ) => Call<ProviderObject>
    /** With `default_price` expanded, as after each change. */
    readonly retrieveProduct: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly listProducts: (account: ConnectedAccount, params: ListProducts) => Call<ProviderPage>

    readonly createPrice: (
      account: ConnectedAccount,
      params: CreatePrice,
      options: WriteOptions
    ) => Call<ProviderObject>
    /** Takes a price out of sale: what was sold at it stays as it is. */
    readonly deactivatePrice: (account: ConnectedAccount, id: string, options: WriteOptions) => Call<ProviderObject>
    /** With `tiers` expanded. */
    readonly retrievePrice: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly listPrices: (account: ConnectedAccount, params: ListPrices) => Call<ProviderPage>

    /** Answers the session, and what it sells as the provider understood it. */
    readonly createCheckoutSession: (
      account: ConnectedAccount,
      params: NewCheckoutSession,
      options: WriteOptions
    ) => Call<{ readonly session: ProviderObject; readonly soldItems: SoldItems }>
    readonly retrieveCheckoutSession: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly listCheckoutSessions: (account: ConnectedAccount, params: ListCheckoutSessions) => Call<ProviderPage>
    /** What a session sells, by its lines. */
    readonly listSessionItems: (account: ConnectedAccount, id: string) => Call<SoldItems>

    readonly createCoupon: (account: ConnectedAccount, params: NewCoupon, options: WriteOptions) => Call<ProviderObject>
    /** Takes its promotion codes out of use with it. */
    readonly deleteCoupon: (account: ConnectedAccount, id: string) => Call<void>

    /** With its coupon as `coupon`, its products included; so in all of the following. */
    readonly createPromotionCode: (
      account: ConnectedAccount,
      params: NewPromotionCode,
      options: WriteOptions
    ) => Call<ProviderObject>
    readonly updatePromotionCode: (
      account: ConnectedAccount,
      id: string,
      changes: UpdatePromotionCode,
      options: WriteOptions
    ) => Call<ProviderObject>
    readonly retrievePromotionCode: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    /** `code` finds what payers enter, whatever its case. */
    readonly listPromotionCodes: (
      account: ConnectedAccount,
      params: ListPromotionCodes & { readonly code?: string }
    ) => Call<ProviderPage>

    /** Answers the link, and what it sells. Links come with their `line_items`. */
    readonly createPaymentLink: (
      account: ConnectedAccount,
      params: NewPaymentLink,
      options: WriteOptions
    ) => Call<{ readonly link: ProviderObject; readonly soldItems: SoldItems }>
    readonly updatePaymentLink: (
      account: ConnectedAccount,
      id: string,
      changes: UpdatePaymentLink,
      options: WriteOptions
    ) => Call<ProviderObject>
    readonly retrievePaymentLink: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly listPaymentLinks: (account: ConnectedAccount, params: ListPaymentLinks) => Call<ProviderPage>

    /** Checks a notification's signature over its exact bytes, and its time in both directions (5 minutes). */
    readonly verifyNotification: (
      body: Uint8Array,
      signatureHeader: string | undefined
    ) => Effect.Effect<VerifiedNotification, SignatureInvalid>
    /** The same for a thin notification, which names what happened and carries no object. */
    readonly verifyThinNotification: (
      body: Uint8Array,
      signatureHeader: string | undefined
    ) => Effect.Effect<VerifiedNotification, SignatureInvalid>

    /** A snapshot event as it was sent; the provider keeps it for 30 days. */
    readonly retrieveEvent: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    /** All items of a subscription, which its own object may name in part. */
    readonly listSubscriptionItems: (
      account: ConnectedAccount,
      subscriptionId: string
    ) => Call<ReadonlyArray<ProviderObject>>
    /** All lines of an invoice, which its own object may name in part. */
    readonly listInvoiceLines: (account: ConnectedAccount, invoiceId: string) => Call<ReadonlyArray<ProviderObject>>
  }
>() {}

/** The prices and products of a session or payment link, each once, in the order of its lines. */
export interface SoldItems {
  readonly priceIds: ReadonlyArray<string>
  readonly productIds: ReadonlyArray<string>
}

/** What changes of a product; a new default price is made before, since the provider takes its id alone. */
export type ProductChanges = Omit<UpdateProduct, "default_price_data">

/** What the prices that are sold add to what the caller asks for. */
export interface SubscriptionTerms {
  /** Days before a new subscription's first charge; null for none. */
  readonly trialPeriodDays: number | null
}

/** A session to be made. */
export type NewCheckoutSession = CreateCheckoutSession & SubscriptionTerms

/** A payment link to be made. */
export type NewPaymentLink = CreatePaymentLink & SubscriptionTerms & { readonly mode: "payment" | "subscription" }

/** A coupon to be made, under an id of our choice. */
export type NewCoupon = Pick<CreatePromotionCode, "discount" | "duration" | "duration_in_months" | "products"> & {
  readonly id: string
}

/** A promotion code to be made for a coupon. */
export type NewPromotionCode = Pick<CreatePromotionCode, "code" | "max_redemptions" | "expires_at"> & {
  /** The coupon's id. */
  readonly coupon: string
}
