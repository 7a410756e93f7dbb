import { Layer } from "effect"
import { accountHttp } from "./account/Http.ts"
import { balanceTransactionsHttp } from "./balance-transactions/Http.ts"
import { checkoutSessionsHttp } from "./checkout/Http.ts"
import { checkoutPagesHttp } from "./checkout-pages/Http.ts"
import { customersHttp } from "./customers/Http.ts"
import { disputesHttp } from "./disputes/Http.ts"
import { paymentLinksHttp } from "./payment-links/Http.ts"
import { chargesHttp, paymentIntentsHttp } from "./payments/Http.ts"
import { payoutsHttp } from "./payouts/Http.ts"
import { pricesHttp } from "./prices/Http.ts"
import { productsHttp } from "./products/Http.ts"
import { promotionCodesHttp } from "./promotion-codes/Http.ts"
import { refundsHttp } from "./refunds/Http.ts"
import { subscriptionsHttp } from "./subscriptions/Http.ts"

/** Serves `ProviderApi`. */
export const providerHttp = Layer.mergeAll(
  productsHttp,
  pricesHttp,
  checkoutSessionsHttp,
  promotionCodesHttp,
  paymentLinksHttp,
  checkoutPagesHttp,
  chargesHttp,
  paymentIntentsHttp,
  refundsHttp,
  disputesHttp,
  customersHttp,
  subscriptionsHttp,
  accountHttp,
  balanceTransactionsHttp,
  payoutsHttp
)
