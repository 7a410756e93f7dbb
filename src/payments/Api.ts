import { HttpApi } from "@effect/platform"
import { AccountApi, BalanceTransactionsApi, PayoutsApi } from "./account/Api.ts"
import { CheckoutPagesApi } from "./checkout-pages/Api.ts"
import { CheckoutSessionsApi } from "./checkout-sessions/Api.ts"
import { PaymentLinksApi } from "./payment-links/Api.ts"
import { ChargesApi, CustomersApi, DisputesApi, PaymentIntentsApi, RefundsApi } from "./payments/Api.ts"
import { PricesApi } from "./prices/Api.ts"
import { ProductsApi } from "./products/Api.ts"
import { PromotionCodesApi } from "./promotion-codes/Api.ts"
import { SearchApi } from "./search/Api.ts"
import { SubscriptionsApi } from "./subscriptions/Api.ts"

export const ProviderApi = HttpApi.make("provider")
  .add(ProductsApi)
  .add(PricesApi)
  .add(CheckoutSessionsApi)
  .add(PromotionCodesApi)
  .add(PaymentLinksApi)
  .add(CheckoutPagesApi)
  .add(ChargesApi)
  .add(PaymentIntentsApi)
  .add(SearchApi)
  .add(RefundsApi)
  .add(DisputesApi)
  .add(CustomersApi)
  .add(SubscriptionsApi)
  .add(AccountApi)
  .add(BalanceTransactionsApi)
  .add(PayoutsApi)
