import type { Route } from "../Route.ts"
import { accountRoutes } from "./Accounts.ts"
import { chargeRoutes } from "./Charges.ts"
import { checkoutSessionRoutes } from "./CheckoutSessions.ts"
import { couponRoutes } from "./Coupons.ts"
import { eventRoutes } from "./Events.ts"
import { paymentIntentRoutes } from "./PaymentIntents.ts"
import { priceRoutes } from "./Prices.ts"
import { productRoutes } from "./Products.ts"
import { promotionCodeRoutes } from "./PromotionCodes.ts"

/** Every operation of the provider's API that the emulator knows; all others are refused as unknown. */
export const routes: ReadonlyArray<Route> = [
  ...accountRoutes,
  ...productRoutes,
  ...priceRoutes,
  ...couponRoutes,
  ...promotionCodeRoutes,
  ...checkoutSessionRoutes,
  ...paymentIntentRoutes,
  ...chargeRoutes,
  ...eventRoutes
]
