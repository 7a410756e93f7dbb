import { Deleted } from "../../identity/KeyedWrite.ts"
import { AccountApi, BalanceTransactionsApi, PayoutsApi } from "../../payments/account/Api.ts"
import { accountHandlers, balanceTransactionsHandlers, payoutsHandlers } from "../../payments/account/Http.ts"
import { CheckoutSessionsApi } from "../../payments/checkout/Api.ts"
import { checkoutSessionsHandlers } from "../../payments/checkout/Http.ts"
import { CheckoutPagesApi } from "../../payments/checkout-pages/Api.ts"
import { checkoutPagesHandlers } from "../../payments/checkout-pages/Http.ts"
import { PaymentLinksApi } from "../../payments/payment-links/Api.ts"
import { paymentLinksHandlers } from "../../payments/payment-links/Http.ts"
import { ChargesApi, CustomersApi, DisputesApi, PaymentIntentsApi, RefundsApi } from "../../payments/payments/Api.ts"
import {
  chargesHandlers,
  customersHandlers,
  disputesHandlers,
  paymentIntentsHandlers,
  refundsHandlers
} from "../../payments/payments/Http.ts"
import { PricesApi } from "../../payments/prices/Api.ts"
import { pricesHandlers } from "../../payments/prices/Http.ts"
import { ProductsApi } from "../../payments/products/Api.ts"
import { productsHandlers } from "../../payments/products/Http.ts"
import { PromotionCodesApi } from "../../payments/promotion-codes/Api.ts"
import { promotionCodesHandlers } from "../../payments/promotion-codes/Http.ts"
import { SearchApi } from "../../payments/search/Api.ts"
import { searchHandlers } from "../../payments/search/Http.ts"
import { SubscriptionsApi } from "../../payments/subscriptions/Api.ts"
import { subscriptionsHandlers } from "../../payments/subscriptions/Http.ts"
import { operationTools } from "./OperationTool.ts"

/** Tools for payments (contract 4): each is an operation on the connected account, or on the pages that sell on it. */

const smallestUnit = "Amounts are whole numbers of the currency's smallest unit: 1500 is R$15.00."

const whenAsked = "Only do this when asked."

export const paymentTools = [
  operationTools(ProductsApi, productsHandlers, {
    list: "list_products",
    get: "get_product",
    create: { name: "create_product", advice: smallestUnit, repeats: "derived" },
    update: {
      name: "update_product",
      description:
        "Absent arguments are unchanged, and `metadata` is merged. `default_price` sets one of the product's prices, `default_price_data` creates a new one. The former price stays as it is. `active: false` takes the product off sale.",
      destructive: true
    }
  }),
  operationTools(PricesApi, pricesHandlers, {
    list: "list_prices",
    get: "get_price",
    create: { name: "create_price", advice: smallestUnit, repeats: "derived" },
    update: { name: "update_price", destructive: true, idempotent: true }
  }),
  operationTools(CheckoutSessionsApi, checkoutSessionsHandlers, {
    list: "list_checkout_sessions",
    get: {
      name: "get_checkout_session",
      advice: "It is paid only if `status` is `complete` and `payment_status` is `paid`."
    },
    lineItems: "list_checkout_session_line_items",
    create: {
      name: "create_checkout_session",
      description:
        "Returns the session with its `url`, a page that is only for the payer; list_checkout_session_line_items shows what it sells. A recurring price (mode `subscription`) also needs the permission `subscriptions:write`; its trial is passed on. `metadata` is copied to the payment or the subscription. Opening the page or returning from it confirms nothing: read the session (get_checkout_session) or wait for the events.",
      advice:
        "For one payer and one payment: give the `url` of the answer to that payer alone. For a page that many can pay at, use create_payment_link. Nothing is paid by creating it."
    },
    expire: {
      name: "expire_checkout_session",
      description:
        "The page can't be paid from then on. Expiring an expired session changes nothing and returns it as it is. A `complete` session is refused with `provider_invalid_request_error`: the payer was faster. Read it, and refund what was paid.",
      advice: whenAsked,
      destructive: true,
      idempotent: true
    }
  }),
  operationTools(PaymentLinksApi, paymentLinksHandlers, {
    list: "list_payment_links",
    get: "get_payment_link",
    lineItems: "list_payment_link_line_items",
    create: {
      name: "create_payment_link",
      advice: "Anybody who has the `url` of the answer can pay there, any number of times, until it is deactivated.",
      repeats: "derived"
    },
    update: { name: "update_payment_link", destructive: true, idempotent: true }
  }),
  operationTools(CheckoutPagesApi, checkoutPagesHandlers, {
    list: "list_checkout_pages",
    get: "get_checkout_page",
    create: {
      name: "create_checkout_page",
      advice:
        "Anybody who has the `url` of the answer can pay there, any number of times, until it is closed (update_checkout_page). `unitAmount` is in the currency's smallest unit.",
      repeats: "derived"
    },
    update: {
      name: "update_checkout_page",
      advice: "`active: false` closes the page, `active: true` opens it again.",
      destructive: true,
      idempotent: true
    },
    delete: {
      name: "delete_checkout_page",
      advice: `${whenAsked} It can't be undone: close a page (update_checkout_page) if it may be needed again.`,
      output: Deleted,
      destructive: true,
      idempotent: true
    }
  }),
  operationTools(PromotionCodesApi, promotionCodesHandlers, {
    list: "list_promotion_codes",
    get: "get_promotion_code",
    create: { name: "create_promotion_code", repeats: "derived" },
    update: { name: "update_promotion_code", destructive: true, idempotent: true }
  }),
  operationTools(PaymentIntentsApi, paymentIntentsHandlers, {
    list: "list_payment_intents",
    get: "get_payment_intent"
  }),
  operationTools(SearchApi, searchHandlers, { payments: { name: "search_payments", reads: true } }),
  operationTools(ChargesApi, chargesHandlers, { list: "list_charges", get: "get_charge" }),
  operationTools(RefundsApi, refundsHandlers, {
    list: "list_refunds",
    get: "get_refund",
    create: {
      name: "create_refund",
      advice: `${whenAsked} It gives money back and can't be undone. ${smallestUnit}`,
      destructive: true,
      repeats: "derived"
    }
  }),
  operationTools(DisputesApi, disputesHandlers, { list: "list_disputes", get: "get_dispute" }),
  operationTools(CustomersApi, customersHandlers, { list: "list_customers", get: "get_customer" }),
  operationTools(SubscriptionsApi, subscriptionsHandlers, {
    list: "list_subscriptions",
    get: "get_subscription",
    update: { name: "update_subscription", advice: whenAsked, destructive: true, idempotent: true },
    cancel: {
      name: "cancel_subscription",
      description:
        "Cancels at once, for good, and returns the subscription. Past payments are not refunded. Canceling a canceled subscription changes nothing and returns it as it is.",
      advice: `${whenAsked} To let what was paid for run out, use update_subscription with \`cancel_at_period_end\`.`,
      destructive: true,
      idempotent: true
    }
  }),
  operationTools(AccountApi, accountHandlers, {
    get: "get_account",
    balance: "get_balance",
    payoutSettings: "get_payout_settings"
  }),
  operationTools(BalanceTransactionsApi, balanceTransactionsHandlers, { list: "list_balance_transactions" }),
  operationTools(PayoutsApi, payoutsHandlers, { list: "list_payouts", get: "get_payout" })
]
