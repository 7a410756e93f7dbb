import { Effect } from "effect"
import { AccountApi, BalanceTransactionsApi, PayoutsApi } from "../provider/account/Api.ts"
import { accountHandlers, balanceTransactionsHandlers, payoutsHandlers } from "../provider/account/Http.ts"
import { CheckoutSessionsApi } from "../provider/checkout/Api.ts"
import { checkoutSessionsHandlers } from "../provider/checkout/Http.ts"
import { CheckoutPagesApi } from "../provider/checkout-pages/Api.ts"
import { checkoutPagesHandlers } from "../provider/checkout-pages/Http.ts"
import { PaymentLinksApi } from "../provider/payment-links/Api.ts"
import { paymentLinksHandlers } from "../provider/payment-links/Http.ts"
import { ChargesApi, CustomersApi, DisputesApi, PaymentIntentsApi, RefundsApi } from "../provider/payments/Api.ts"
import {
  chargesHandlers,
  customersHandlers,
  disputesHandlers,
  paymentIntentsHandlers,
  refundsHandlers
} from "../provider/payments/Http.ts"
import { PricesApi } from "../provider/prices/Api.ts"
import { pricesHandlers } from "../provider/prices/Http.ts"
import { ProductsApi } from "../provider/products/Api.ts"
import { productsHandlers } from "../provider/products/Http.ts"
import { PromotionCodesApi } from "../provider/promotion-codes/Api.ts"
import { promotionCodesHandlers } from "../provider/promotion-codes/Http.ts"
import { SubscriptionsApi } from "../provider/subscriptions/Api.ts"
import { subscriptionsHandlers } from "../provider/subscriptions/Http.ts"
import { makeOperationTool } from "./OperationTool.ts"

/** Tools for payments (contract 4): each is an operation on the connected account, or on the pages that sell on it. */

export const nextPage = "`has_more` says whether there is another page: pass the last id as `starting_after`."

const smallestUnit = "Amounts are whole numbers of the currency's smallest unit: 1500 is R$15.00."

const whenAsked = "Only do this when asked."

/** Tools that read, create and change products, prices and the ways to sell them. */
const makeSalesTools = Effect.gen(function* () {
  const tool = yield* makeOperationTool
  const products = yield* productsHandlers
  const prices = yield* pricesHandlers
  const sessions = yield* checkoutSessionsHandlers
  const links = yield* paymentLinksHandlers
  const pages = yield* checkoutPagesHandlers
  const codes = yield* promotionCodesHandlers
  return [
    tool(ProductsApi, "list", products.list, { name: "list_products", advice: nextPage }),
    tool(ProductsApi, "get", products.get, { name: "get_product" }),
    tool(ProductsApi, "create", products.create, {
      name: "create_product",
      advice: smallestUnit,
      repeats: "derived"
    }),
    tool(ProductsApi, "update", products.update, {
      name: "update_product",
      description:
        "Absent arguments are unchanged, and `metadata` is merged. `default_price` sets one of the product's prices, `default_price_data` creates a new one. The former price stays as it is. `active: false` takes the product off sale.",
      destructive: true
    }),
    tool(PricesApi, "list", prices.list, { name: "list_prices", advice: nextPage }),
    tool(PricesApi, "get", prices.get, { name: "get_price" }),
    tool(PricesApi, "create", prices.create, { name: "create_price", advice: smallestUnit, repeats: "derived" }),
    tool(PricesApi, "update", prices.update, { name: "update_price", destructive: true, idempotent: true }),
    tool(CheckoutSessionsApi, "list", sessions.list, { name: "list_checkout_sessions", advice: nextPage }),
    tool(CheckoutSessionsApi, "get", sessions.get, {
      name: "get_checkout_session",
      advice: "It is paid only if `status` is `complete` and `payment_status` is `paid`."
    }),
    tool(CheckoutSessionsApi, "lineItems", sessions.lineItems, {
      name: "list_checkout_session_line_items",
      advice: nextPage
    }),
    tool(CheckoutSessionsApi, "create", sessions.create, {
      name: "create_checkout_session",
      description:
        "Returns the session with its `url`, a page that is only for the payer; list_checkout_session_line_items shows what it sells. A recurring price (mode `subscription`) also needs the permission `subscriptions:write`; its trial is passed on. `metadata` is copied to the payment or the subscription. Opening the page or returning from it confirms nothing: read the session (get_checkout_session) or wait for the events.",
      advice:
        "For one payer and one payment: give the `url` of the answer to that payer alone. For a page that many can pay at, use create_payment_link. Nothing is paid by creating it."
    }),
    tool(CheckoutSessionsApi, "expire", sessions.expire, {
      name: "expire_checkout_session",
      description:
        "The page can't be paid from then on. Expiring an expired session changes nothing and returns it as it is. A `complete` session is refused with `provider_invalid_request_error`: the payer was faster. Read it, and refund what was paid.",
      advice: whenAsked,
      destructive: true,
      idempotent: true
    }),
    tool(PaymentLinksApi, "list", links.list, { name: "list_payment_links", advice: nextPage }),
    tool(PaymentLinksApi, "get", links.get, { name: "get_payment_link" }),
    tool(PaymentLinksApi, "lineItems", links.lineItems, { name: "list_payment_link_line_items", advice: nextPage }),
    tool(PaymentLinksApi, "create", links.create, {
      name: "create_payment_link",
      advice: "Anybody who has the `url` of the answer can pay there, any number of times, until it is deactivated.",
      repeats: "derived"
    }),
    tool(PaymentLinksApi, "update", links.update, { name: "update_payment_link", destructive: true, idempotent: true }),
    tool(CheckoutPagesApi, "list", pages.list, { name: "list_checkout_pages", advice: nextPage }),
    tool(CheckoutPagesApi, "get", pages.get, { name: "get_checkout_page" }),
    tool(CheckoutPagesApi, "create", pages.create, {
      name: "create_checkout_page",
      advice:
        "Anybody who has the `url` of the answer can pay there, any number of times, until it is closed (update_checkout_page). `unitAmount` is in the currency's smallest unit.",
      repeats: "derived"
    }),
    tool(CheckoutPagesApi, "update", pages.update, {
      name: "update_checkout_page",
      advice: "`active: false` closes the page, `active: true` opens it again.",
      destructive: true,
      idempotent: true
    }),
    tool(PromotionCodesApi, "list", codes.list, { name: "list_promotion_codes", advice: nextPage }),
    tool(PromotionCodesApi, "get", codes.get, { name: "get_promotion_code" }),
    tool(PromotionCodesApi, "create", codes.create, { name: "create_promotion_code", repeats: "derived" }),
    tool(PromotionCodesApi, "update", codes.update, {
      name: "update_promotion_code",
      destructive: true,
      idempotent: true
    })
  ]
})

/** Tools for payments received, and for the account that received them. */
const makeMoneyTools = Effect.gen(function* () {
  const tool = yield* makeOperationTool
  const charges = yield* chargesHandlers
  const intents = yield* paymentIntentsHandlers
  const refunds = yield* refundsHandlers
  const disputes = yield* disputesHandlers
  const customers = yield* customersHandlers
  const subscriptions = yield* subscriptionsHandlers
  const account = yield* accountHandlers
  const transactions = yield* balanceTransactionsHandlers
  const payouts = yield* payoutsHandlers
  return [
    tool(PaymentIntentsApi, "list", intents.list, { name: "list_payment_intents", advice: nextPage }),
    tool(PaymentIntentsApi, "get", intents.get, { name: "get_payment_intent" }),
    tool(ChargesApi, "list", charges.list, { name: "list_charges", advice: nextPage }),
    tool(ChargesApi, "get", charges.get, { name: "get_charge" }),
    tool(RefundsApi, "list", refunds.list, { name: "list_refunds", advice: nextPage }),
    tool(RefundsApi, "get", refunds.get, { name: "get_refund" }),
    tool(RefundsApi, "create", refunds.create, {
      name: "create_refund",
      advice: `${whenAsked} It gives money back and can't be undone. ${smallestUnit}`,
      destructive: true,
      repeats: "derived"
    }),
    tool(DisputesApi, "list", disputes.list, { name: "list_disputes", advice: nextPage }),
    tool(DisputesApi, "get", disputes.get, { name: "get_dispute" }),
    tool(CustomersApi, "list", customers.list, { name: "list_customers", advice: nextPage }),
    tool(CustomersApi, "get", customers.get, { name: "get_customer" }),
    tool(SubscriptionsApi, "list", subscriptions.list, { name: "list_subscriptions", advice: nextPage }),
    tool(SubscriptionsApi, "get", subscriptions.get, { name: "get_subscription" }),
    tool(SubscriptionsApi, "update", subscriptions.update, {
      name: "update_subscription",
      advice: whenAsked,
      destructive: true,
      idempotent: true
    }),
    tool(SubscriptionsApi, "cancel", subscriptions.cancel, {
      name: "cancel_subscription",
      description:
        "Cancels at once, for good, and returns the subscription. Past payments are not refunded. Canceling a canceled subscription changes nothing and returns it as it is.",
      advice: `${whenAsked} To let what was paid for run out, use update_subscription with \`cancel_at_period_end\`.`,
      destructive: true,
      idempotent: true
    }),
    tool(AccountApi, "get", account.get, { name: "get_account" }),
    tool(AccountApi, "balance", account.balance, { name: "get_balance" }),
    tool(AccountApi, "payoutSettings", account.payoutSettings, { name: "get_payout_settings" }),
    tool(BalanceTransactionsApi, "list", transactions.list, { name: "list_balance_transactions", advice: nextPage }),
    tool(PayoutsApi, "list", payouts.list, { name: "list_payouts", advice: nextPage }),
    tool(PayoutsApi, "get", payouts.get, { name: "get_payout" })
  ]
})

export const makePaymentTools = Effect.zipWith(makeSalesTools, makeMoneyTools, (sales, money) => [...sales, ...money])
