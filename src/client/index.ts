/**
 * The typed client of the HTTP API. Schemas, and errors other than the client's own, are in `connected-payments/api`.
 */
export { type Client, type ClientFailure, type ClientOptions, ConnectedPayments, makeClient } from "./Client.ts"
export { type EventStreamItem, type EventStreamOptions, EventStreamRefused, eventStream } from "./EventStream.ts"
export { type Failure, ProviderAmountTooLarge, ProviderResourceAlreadyExists, type Refusal } from "./Refusals.ts"
export type {
  Account,
  Balance,
  BalanceTransaction,
  Charge,
  CheckoutSession,
  Customer,
  Dispute,
  LineItem,
  Page,
  PaymentIntent,
  PaymentLink,
  Payout,
  Price,
  Product,
  PromotionCode,
  Refund,
  Subscription
} from "./Resources.ts"
export type { RetryOptions } from "./Retries.ts"
