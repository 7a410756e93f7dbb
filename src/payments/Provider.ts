import { Context } from "effect"
import type { AccountPort } from "./account/StripeAccount.ts"
import type { CheckoutSessionsPort } from "./checkout-sessions/StripeCheckoutSessions.ts"
import type { ConnectingPort } from "./connecting/Port.ts"
import type { NotificationsPort } from "./notifications/Port.ts"
import type { PaymentLinksPort } from "./payment-links/StripePaymentLinks.ts"
import type { PaymentsPort } from "./payments/StripePayments.ts"
import type { PricesPort } from "./prices/StripePrices.ts"
import type { ProductsPort } from "./products/StripeProducts.ts"
import type { PromotionCodesPort } from "./promotion-codes/StripePromotionCodes.ts"
import type { SubscriptionsPort } from "./subscriptions/StripeSubscriptions.ts"

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
    SubscriptionsPort {
  /** `source.provider` of its events: a small letter, then at most 39 small letters, digits and `_`. */
  readonly name: string
}

/**
 * The payment provider, as the service uses it. Replace this layer to run on another provider (`providerOf`) or on
 * your own test double: parameters and answers are JSON with the provider's names, errors are the documented ones.
 */
export class Provider extends Context.Tag("connected-payments/payments/Provider")<Provider, ProviderShape>() {}
