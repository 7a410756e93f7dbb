import { HttpApi } from "@effect/platform"
import { AccountApi } from "./account/Api.ts"
import { BalanceTransactionsApi } from "./balance-transactions/Api.ts"
import { CheckoutSessionsApi } from "./checkout/Api.ts"
import { CheckoutPagesApi } from "./checkout-pages/Api.ts"
import { CustomersApi } from "./customers/Api.ts"
import { DisputesApi } from "./disputes/Api.ts"
import { PaymentLinksApi } from "./payment-links/Api.ts"
import { ChargesApi, PaymentIntentsApi } from "./payments/Api.ts"
import { PayoutsApi } from "./payouts/Api.ts"
import { PricesApi } from "./prices/Api.ts"
import { ProductsApi } from "./products/Api.ts"
import { PromotionCodesApi } from "./promotion-codes/Api.ts"
import { RefundsApi } from "./refunds/Api.ts"
import { SubscriptionsApi } from "./subscriptions/Api.ts"

/** The contract's groups of operations on the connected account, in the order of the documents. */
export const ProviderApi = HttpApi.make("provider")
  .add(ProductsApi)
  .add(PricesApi)
  .add(CheckoutSessionsApi)
  .add(PromotionCodesApi)
  .add(PaymentLinksApi)
  .add(CheckoutPagesApi)
  .add(ChargesApi)
  .add(PaymentIntentsApi)
  .add(RefundsApi)
  .add(DisputesApi)
  .add(CustomersApi)
  .add(SubscriptionsApi)
  .add(AccountApi)
  .add(BalanceTransactionsApi)
  .add(PayoutsApi)
