import { Effect, identity, Schema } from "effect"
import { ProviderObject, ProviderPage } from "../surface/contract/index.ts"
import { type providerResources, resourceOf } from "../surface/contract/ProviderResources.ts"

/**
 * The provider's objects as the client returns them. Each documented field may be missing or null, and is undefined if
 * the provider sends a type other than the documented one; all other fields are as the provider sends them. So no
 * change at the provider makes a call fail, except an object without its id, which is a `ParseError`.
 */

type Resources = typeof providerResources
type Of<Place extends keyof Resources> = Schema.Schema.Type<Resources[Place]["schema"]>

/** A product. */
export interface Product extends Of<"products"> {}
/** A price of a product. */
export interface Price extends Of<"prices"> {}
/** A checkout session; confirmed only if `status` is `complete` and `payment_status` is `paid`. */
export interface CheckoutSession extends Of<"checkoutSessions"> {}
/** A line item of a checkout session or a payment link. */
export interface LineItem extends Of<"checkoutSessions.lineItems"> {}
/** A promotion code with its coupon. */
export interface PromotionCode extends Of<"promotionCodes"> {}
/** A payment link. */
export interface PaymentLink extends Of<"paymentLinks"> {}
/** A payment. */
export interface PaymentIntent extends Of<"paymentIntents"> {}
/** A charge. */
export interface Charge extends Of<"charges"> {}
/** A refund. */
export interface Refund extends Of<"refunds"> {}
/** A dispute of a payment. */
export interface Dispute extends Of<"disputes"> {}
/** A customer; without `customers:read`, only its id and fields that are not personal. */
export interface Customer extends Of<"customers"> {}
/** A subscription. */
export interface Subscription extends Of<"subscriptions"> {}
/** A payout. */
export interface Payout extends Of<"payouts"> {}
/** A movement of the account's balance. */
export interface BalanceTransaction extends Of<"balanceTransactions"> {}
/** The connected account. */
export interface Account extends Of<"account.get"> {}
/** The account's balance by currency. */
export interface Balance extends Of<"account.balance"> {}

/** A page of the provider's objects, newest first. */
export interface Page<Item> {
  readonly data: ReadonlyArray<Item>
  readonly has_more: boolean
  readonly [field: string]: unknown
}

type ResourceOf<Group, Name> = `${Group & string}.${Name & string}` extends infer Place extends keyof Resources
  ? Of<Place>
  : Group extends keyof Resources
    ? Of<Group>
    : ProviderObject

/** The result of a client's operation: the contract's success type, with provider objects typed as their resource. */
export type Answer<Group, Name, Success> = [Success] extends [never]
  ? never
  : [ProviderObject] extends [Success]
    ? ResourceOf<Group, Name>
    : [ProviderPage] extends [Success]
      ? Page<ResourceOf<Group, Name>>
      : Success

type Read = (answer: Effect.Effect<unknown, unknown>) => Effect.Effect<unknown, unknown>

/** Reads the answers of an operation as described by `Answer`; those without a provider object are unchanged. */
export const readAnswer = (group: string, operation: string, { ast }: Schema.Schema.All): Read => {
  const resource = resourceOf(group, operation)
  if (resource === undefined) return identity
  if (ast === ProviderObject.ast) return Effect.flatMap(Schema.decodeUnknown(resource.schema))
  if (ast === ProviderPage.ast && resource.page !== undefined) {
    return Effect.flatMap(Schema.decodeUnknown(resource.page))
  }
  return identity
}
