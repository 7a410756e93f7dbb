import type { Route } from "../api/Route.ts"
import { balanceRoutes } from "./balance/Balance.ts"
import { balanceTransactionRoutes } from "./balance/BalanceTransactions.ts"
import { payoutRoutes } from "./balance/Payouts.ts"
import { customerRoutes } from "./billing/Customers.ts"
import { invoiceRoutes } from "./billing/Invoices.ts"
import { subscriptionRoutes } from "./billing/Subscriptions.ts"
import { couponRoutes } from "./catalog/Coupons.ts"
import { priceRoutes } from "./catalog/Prices.ts"
import { productRoutes } from "./catalog/Products.ts"
import { promotionCodeRoutes } from "./catalog/PromotionCodes.ts"
import { checkoutSessionRoutes } from "./checkout/CheckoutSessions.ts"
import { paymentLinkRoutes } from "./checkout/PaymentLinks.ts"
import { accountLinkRoutes } from "./connect/AccountLinks.ts"
import { accountRoutes } from "./connect/Accounts.ts"
import { eventRoutes } from "./Events.ts"
import { chargeRoutes } from "./payments/Charges.ts"
import { disputeRoutes } from "./payments/Disputes.ts"
import { paymentIntentRoutes } from "./payments/PaymentIntents.ts"
import { refundRoutes } from "./payments/Refunds.ts"

/** Every operation of the provider's API that the emulator supports; all others are refused as unknown. */
export const routes: ReadonlyArray<Route> = [
  ...accountRoutes,
  ...accountLinkRoutes,
  ...productRoutes,
  ...priceRoutes,
  ...couponRoutes,
  ...promotionCodeRoutes,
  ...paymentLinkRoutes,
  ...checkoutSessionRoutes,
  ...paymentIntentRoutes,
  ...chargeRoutes,
  ...refundRoutes,
  ...disputeRoutes,
  ...customerRoutes,
  ...subscriptionRoutes,
  ...invoiceRoutes,
  ...balanceRoutes,
  ...balanceTransactionRoutes,
  ...payoutRoutes,
  ...eventRoutes
]
