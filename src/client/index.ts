/** The typed client of the HTTP API. Errors and schemas: `connected-payments/api`. */
export { type Client, type ClientFailure, type ClientOptions, ConnectedPayments, makeClient } from "./Client.ts"
export type {
  Account,
  Balance,
  BalanceTransaction,
  Charge,
  CheckoutSession,
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
