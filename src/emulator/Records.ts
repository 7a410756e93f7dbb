import type { Stripe } from "stripe"
import type { ApiVersion } from "./Versions.ts"

export type WordsOf<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | WordsOf<Rest> : Text

/** The fields of a provider's object that the emulator never fills: all null. Names are separated by spaces. */
export function nulls<const Names extends string>(names: Names): { readonly [Name in WordsOf<Names>]: null }
export function nulls(names: string): Readonly<Record<string, null>> {
  return Object.fromEntries(names.split(" ").map((name) => [name, null]))
}

/** The named parameters of a request, each null if it is absent. Names are separated by spaces. */
export function given<P extends object, const Names extends string>(
  params: P,
  names: Names
): { readonly [Name in WordsOf<Names> & keyof P]: Exclude<P[Name], undefined> | null }
export function given(params: object, names: string): Readonly<Record<string, unknown>> {
  const values = new Map<string, unknown>(Object.entries(params))
  return Object.fromEntries(names.split(" ").map((name) => [name, values.get(name) ?? null]))
}

/**
 * A provider type in its JSON form. The SDK's types have `Decimal` where the JSON has a string, and allow an expanded
 * object instead of an id.
 */
export type Wire<T> = T extends string
  ? T
  : T extends Stripe.Decimal
    ? string
    : T extends ReadonlyArray<infer Item>
      ? ReadonlyArray<Wire<Item>>
      : T extends object
        ? { readonly [Key in keyof T]: Wire<T[Key]> }
        : T

export type Account = Omit<Wire<Stripe.Account>, "requirements"> & { readonly requirements?: Requirements }
export type Requirements = Omit<Wire<Stripe.Account.Requirements>, "disabled_reason"> & {
  readonly disabled_reason: string | null
}
export type Product = Omit<Wire<Stripe.Product>, "default_price"> & { readonly default_price: string | null }
export type Price = Omit<Wire<Stripe.Price>, "product"> & { readonly product: string }
export type PriceTier = Wire<Stripe.Price.Tier>
export type LineItem = Omit<Wire<Stripe.LineItem>, "price"> & { readonly price: Price; readonly quantity: number }
export type Session = Omit<
  Wire<Stripe.Checkout.Session>,
  | "payment_intent"
  | "currency"
  | "amount_total"
  | "payment_link"
  | "customer"
  | "invoice"
  | "subscription"
  | "discounts"
> & {
  readonly amount_total: number
  readonly currency: string
  readonly customer: string | null
  readonly discounts: ReadonlyArray<SessionDiscount>
  readonly invoice: string | null
  readonly payment_intent: string | null
  readonly payment_link: string | null
  readonly subscription: string | null
}
/** A discount of a session; the payer enters promotion codes only, so `coupon` is null. */
export interface SessionDiscount {
  readonly coupon: null
  readonly promotion_code: string
}
export type PaymentIntent = Omit<Wire<Stripe.PaymentIntent>, "latest_charge"> & {
  readonly latest_charge: string | null
}
export type Charge = Omit<Wire<Stripe.Charge>, "payment_intent" | "balance_transaction"> & {
  readonly balance_transaction: string | null
  readonly payment_intent: string | null
}
export type Coupon = Wire<Stripe.Coupon>
export type PromotionCode = Omit<Wire<Stripe.PromotionCode>, "promotion"> & {
  readonly promotion: { readonly coupon: string; readonly type: "coupon" }
}
export type Discount = Wire<Stripe.Discount>
export type PaymentLink = Wire<Stripe.PaymentLink>
export type Customer = Wire<Stripe.Customer>
export type SubscriptionItem = Omit<Wire<Stripe.SubscriptionItem>, "price"> & { readonly price: Price }
export type Subscription = Omit<Wire<Stripe.Subscription>, "customer" | "items" | "latest_invoice" | "discounts"> & {
  readonly customer: string
  readonly discounts: ReadonlyArray<string>
  readonly items: List<SubscriptionItem>
  readonly latest_invoice: string | null
}
export type InvoiceLine = Omit<Wire<Stripe.InvoiceLineItem>, "subscription"> & { readonly subscription: string | null }
export type Invoice = Omit<Wire<Stripe.Invoice>, "customer" | "lines" | "parent" | "payments"> & {
  readonly customer: string
  readonly lines: List<InvoiceLine>
  readonly parent: {
    readonly quote_details: null
    readonly subscription_details: {
      readonly metadata: Readonly<Record<string, string>>
      readonly subscription: string
    }
    readonly type: "subscription_details"
  }
  readonly payments: List<InvoicePayment>
}
export type InvoicePayment = Wire<Stripe.InvoicePayment>
export type Refund = Omit<Wire<Stripe.Refund>, "charge" | "payment_intent"> & {
  readonly charge: string
  readonly payment_intent: string | null
}
export type BalanceTransaction = Omit<Wire<Stripe.BalanceTransaction>, "source"> & { readonly source: string }
export type Payout = Wire<Stripe.Payout>
export type BankAccount = Wire<Stripe.BankAccount>
export type Dispute = Omit<Wire<Stripe.Dispute>, "charge" | "payment_intent" | "balance_transactions"> & {
  readonly balance_transactions: ReadonlyArray<BalanceTransaction>
  readonly charge: string
  readonly payment_intent: string | null
}

export interface List<Item> {
  readonly object: "list"
  readonly data: ReadonlyArray<Item>
  readonly has_more: boolean
  readonly url: string
}

/** An event with a snapshot of its object at that time. */
export interface Event {
  readonly id: string
  readonly object: "event"
  /** The connected account; absent on events of the platform itself. */
  readonly account?: string
  readonly api_version: string
  readonly context?: string
  readonly created: number
  readonly data: { readonly object: unknown; readonly previous_attributes?: Readonly<Record<string, unknown>> }
  readonly livemode: false
  readonly pending_webhooks: number
  readonly request: EventRequest
  readonly type: Stripe.Event.Type
}

export interface ThinEvent {
  readonly id: string
  readonly object: "v2.core.event"
  readonly type: Stripe.V2.Core.EventNotification["type"]
  /** ISO 8601. */
  readonly created: string
  readonly livemode: false
  /** The connected account on which it happened; absent on events of the platform itself. */
  readonly context?: string
  /** Absent if the event is not about an object. */
  readonly related_object?: RelatedObject
  /** The event that reports the same with its object. */
  readonly snapshot_event?: string
}

export interface RelatedObject {
  readonly id: string
  readonly type: string
  /** Its URL, such as `/v1/accounts/acct_1`. */
  readonly url: string
}

/** The API request that caused an event; nulls if none did. */
export interface EventRequest {
  readonly id: string | null
  readonly idempotency_key: string | null
}

/** A session's or a link's items and payment data, which the provider does not show with it. */
export interface Order {
  readonly items: ReadonlyArray<LineItem>
  readonly paymentIntentData: PaymentIntentData
  readonly subscriptionData: SubscriptionData
  /** The payment intent of a subscription's declined first payment, which the session itself does not name. */
  readonly attemptedIntent?: string
}

export type PaymentIntentData = Pick<
  PaymentIntent,
  "description" | "metadata" | "receipt_email" | "statement_descriptor" | "statement_descriptor_suffix"
>

export interface SubscriptionData {
  readonly metadata: Readonly<Record<string, string>>
  readonly description: string | null
  readonly trialPeriodDays: number | null
}

/** The platform's two webhook endpoints: for events with their object, and for thin events. */
export type Entry = "snapshot" | "thin"

/**
 * The state of an event's notification. While it is pending, `attempts` and the two fields after it are written when
 * the outcome changes, not at every retry.
 */
export interface Delivery {
  /** The event's id; a thin event's if `entry` is `thin`. */
  readonly event: string
  /** The webhook endpoint that it is sent to; by default the one for snapshots. */
  readonly entry?: Entry
  /** The version of the payload; by default the target's. */
  readonly apiVersion?: ApiVersion
  readonly state: "pending" | "delivered"
  readonly attempts: number
  readonly lastStatus: number | null
  readonly lastError: string | null
}

export interface StoredAnswer {
  readonly key: string
  readonly method: string
  readonly path: string
  readonly parameters: string
  readonly status: number
  readonly body: string
  readonly requestId: string
  /** Unix seconds. */
  readonly created: number
}

export interface WebhookTarget {
  readonly url: string
  /** The version of snapshots; by default the current one. */
  readonly apiVersion?: ApiVersion
}

/** Whether the platform may still act for a connected account; an account without this record is connected. */
export interface PlatformAccess {
  readonly account: string
  readonly revoked: boolean
}

/** A link to an account's onboarding, by the random part of its URL. It works once, before it expires. */
export interface AccountLink {
  readonly id: string
  readonly account: string
  /** Unix seconds. */
  readonly expires: number
  readonly returnUrl: string
  readonly refreshUrl: string
  readonly opened: boolean
}

/** A visit to an account's onboarding, by the random part of its page's URL; it ends when the owner leaves. */
export interface OnboardingVisit {
  readonly id: string
  readonly account: string
  readonly returnUrl: string
  /** Unix seconds. */
  readonly created: number
}

/** An authorization by an account's owner, by its code. */
export interface Authorization {
  readonly code: string
  readonly account: string
  readonly scope: "read_only" | "read_write"
  /** Unix seconds. */
  readonly expires: number
  readonly redeemed: boolean
}

export interface Upsell {
  readonly price: string
  readonly upsell: string
}

export interface PayoutContents {
  readonly payout: string
  readonly transactions: ReadonlyArray<string>
}

export interface Records {
  readonly account: Account
  readonly product: Product
  readonly price: Price
  readonly upsell: Upsell
  readonly "checkout.session": Session
  readonly order: Order
  readonly payment_intent: PaymentIntent
  readonly charge: Charge
  readonly coupon: Coupon
  readonly promotion_code: PromotionCode
  readonly discount: Discount
  readonly payment_link: PaymentLink
  readonly customer: Customer
  readonly subscription: Subscription
  readonly invoice: Invoice
  readonly refund: Refund
  readonly dispute: Dispute
  readonly balance_transaction: BalanceTransaction
  readonly payout: Payout
  readonly payout_contents: PayoutContents
  readonly connection: PlatformAccess
  readonly account_link: AccountLink
  readonly onboarding_visit: OnboardingVisit
  readonly authorization: Authorization
  readonly event: Event
  readonly thin_event: ThinEvent
  readonly delivery: Delivery
  readonly answer: StoredAnswer
  readonly webhook: WebhookTarget
}

export type Kind = keyof Records

/** The kinds of records with an id of their own. */
export type KindWithId = { [K in Kind]: Records[K] extends { readonly id: string } ? K : never }[Kind]

/** Records by kind and id, in creation order; `Absent` is null if removals must be remembered. */
export type Collections<Absent = never> = { readonly [K in Kind]: Map<string, Records[K] | Absent> }

/** Every kind, as a record's keys, so that the compiler notices a missing one. */
export const everyKind: Readonly<Record<Kind, null>> = {
  ...nulls("account product price upsell checkout.session order payment_intent charge coupon promotion_code discount"),
  ...nulls("payment_link customer subscription invoice refund dispute balance_transaction payout payout_contents"),
  ...nulls("connection account_link onboarding_visit authorization event thin_event delivery answer webhook")
}

/** One record that is set, or removed (`value: null`), in an account's scope. */
export type Change<K extends Kind = Kind> = {
  [P in K]: { readonly scope: string; readonly kind: P; readonly id: string; readonly value: Records[P] | null }
}[K]
