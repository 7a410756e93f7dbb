import { Layer } from "effect"
import { serve } from "../platform/kit/Handlers.ts"
import { AccountApi, BalanceTransactionsApi, PayoutsApi } from "./account/Api.ts"
import { accountHandlers, balanceTransactionsHandlers, payoutsHandlers } from "./account/Http.ts"
import { CheckoutPagesApi } from "./checkout-pages/Api.ts"
import { checkoutPagesHandlers } from "./checkout-pages/Http.ts"
import { CheckoutSessionsApi } from "./checkout-sessions/Api.ts"
import { checkoutSessionsHandlers } from "./checkout-sessions/Http.ts"
import { PaymentLinksApi } from "./payment-links/Api.ts"
import { paymentLinksHandlers } from "./payment-links/Http.ts"
import { ChargesApi, CustomersApi, DisputesApi, PaymentIntentsApi, RefundsApi } from "./payments/Api.ts"
import {
  chargesHandlers,
  customersHandlers,
  disputesHandlers,
  paymentIntentsHandlers,
  refundsHandlers
} from "./payments/Http.ts"
import { PricesApi } from "./prices/Api.ts"
import { pricesHandlers } from "./prices/Http.ts"
import { ProductsApi } from "./products/Api.ts"
import { productsHandlers } from "./products/Http.ts"
import { PromotionCodesApi } from "./promotion-codes/Api.ts"
import { promotionCodesHandlers } from "./promotion-codes/Http.ts"
import { SearchApi } from "./search/Api.ts"
import { searchHandlers } from "./search/Http.ts"
import { SubscriptionsApi } from "./subscriptions/Api.ts"
import { subscriptionsHandlers } from "./subscriptions/Http.ts"

export const providerHttp = Layer.mergeAll(
  serve(ProductsApi, productsHandlers),
  serve(PricesApi, pricesHandlers),
  serve(CheckoutSessionsApi, checkoutSessionsHandlers),
  serve(PromotionCodesApi, promotionCodesHandlers),
  serve(PaymentLinksApi, paymentLinksHandlers),
  serve(CheckoutPagesApi, checkoutPagesHandlers),
  serve(ChargesApi, chargesHandlers),
  serve(PaymentIntentsApi, paymentIntentsHandlers),
  serve(SearchApi, searchHandlers),
  serve(RefundsApi, refundsHandlers),
  serve(DisputesApi, disputesHandlers),
  serve(CustomersApi, customersHandlers),
  serve(SubscriptionsApi, subscriptionsHandlers),
  serve(AccountApi, accountHandlers),
  serve(BalanceTransactionsApi, balanceTransactionsHandlers),
  serve(PayoutsApi, payoutsHandlers)
)
