import type { Route } from "../api/Route.ts"
import { accountLinkRoutes } from "./AccountLinks.ts"
import { accountRoutes } from "./Accounts.ts"
import { balanceRoutes } from "./Balance.ts"
import { balanceTransactionRoutes } from "./BalanceTransactions.ts"
import { chargeRoutes } from "./Charges.ts"
import { checkoutSessionRoutes } from "./CheckoutSessions.ts"
import { couponRoutes } from "./Coupons.ts"
import { customerRoutes } from "./Customers.ts"
import { disputeRoutes } from "./Disputes.ts"
import { eventRoutes } from "./Events.ts"
import { invoiceRoutes } from "./InvoiceCreation.ts"
import { paymentIntentRoutes } from "./PaymentIntents.ts"
import { paymentLinkRoutes } from "./PaymentLinks.ts"
import { payoutRoutes } from "./Payouts.ts"
import { priceRoutes } from "./Prices.ts"
import { productRoutes } from "./Products.ts"
import { promotionCodeRoutes } from "./PromotionCodes.ts"
import { refundRoutes } from "./Refunds.ts"
import { subscriptionRoutes } from "./Subscriptions.ts"

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
