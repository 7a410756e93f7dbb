import { Context } from "effect"
import type { AccountPort } from "./account/Port.ts"
import type { BalanceTransactionsPort } from "./balance-transactions/Port.ts"
import type { CheckoutSessionsPort } from "./checkout/Port.ts"
import type { ConnectingPort } from "./connecting/Port.ts"
import type { CustomersPort } from "./customers/Port.ts"
import type { DisputesPort } from "./disputes/Port.ts"
import type { NotificationsPort } from "./notifications/Port.ts"
import type { PaymentLinksPort } from "./payment-links/Port.ts"
import type { PaymentsPort } from "./payments/Port.ts"
import type { PayoutsPort } from "./payouts/Port.ts"
import type { PricesPort } from "./prices/Port.ts"
import type { ProductsPort } from "./products/Port.ts"
import type { PromotionCodesPort } from "./promotion-codes/Port.ts"
import type { RefundsPort } from "./refunds/Port.ts"
import type { SubscriptionsPort } from "./subscriptions/Port.ts"

/** Every provider operation that the service uses: the union of all resources' ports. */
export interface ProviderShape
  extends AccountPort,
    BalanceTransactionsPort,
    CheckoutSessionsPort,
    ConnectingPort,
    CustomersPort,
    DisputesPort,
    NotificationsPort,
    PaymentLinksPort,
    PaymentsPort,
    PayoutsPort,
    PricesPort,
    ProductsPort,
    PromotionCodesPort,
    RefundsPort,
    SubscriptionsPort {}

/**
 * The payment provider, as the service uses it. Replace this layer to run on another provider or on your own test
 * double: parameters and answers are JSON with the provider's names, errors are the documented ones.
 */
export class Provider extends Context.Tag("connected-payments/provider/Provider")<Provider, ProviderShape>() {}
