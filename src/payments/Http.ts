import { Layer } from "effect"
import { serve } from "../platform/kit/Handlers.ts"
import { accountHandlers, balanceTransactionsHandlers, payoutsHandlers } from "./account/Http.ts"
import { checkoutPagesHandlers } from "./checkout-pages/Http.ts"
import { checkoutSessionsHandlers } from "./checkout-sessions/Http.ts"
import { paymentLinksHandlers } from "./payment-links/Http.ts"
import {
  chargesHandlers,
  customersHandlers,
  disputesHandlers,
  paymentIntentsHandlers,
  refundsHandlers
} from "./payments/Http.ts"
import { pricesHandlers } from "./prices/Http.ts"
import { productsHandlers } from "./products/Http.ts"
import { promotionCodesHandlers } from "./promotion-codes/Http.ts"
import { searchHandlers } from "./search/Http.ts"
import { subscriptionsHandlers } from "./subscriptions/Http.ts"

export const providerHttp = Layer.mergeAll(
  serve(productsHandlers),
  serve(pricesHandlers),
  serve(checkoutSessionsHandlers),
  serve(promotionCodesHandlers),
  serve(paymentLinksHandlers),
  serve(checkoutPagesHandlers),
  serve(chargesHandlers),
  serve(paymentIntentsHandlers),
  serve(searchHandlers),
  serve(refundsHandlers),
  serve(disputesHandlers),
  serve(customersHandlers),
  serve(subscriptionsHandlers),
  serve(accountHandlers),
  serve(balanceTransactionsHandlers),
  serve(payoutsHandlers)
)
