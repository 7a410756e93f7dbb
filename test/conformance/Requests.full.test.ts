import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, FastCheck, Schema } from "effect"
import { ListBalanceTransactions, ListPayouts } from "../../src/payments/account/Api.ts"
import { ListCheckoutSessions } from "../../src/payments/checkout-sessions/Api.ts"
import { CheckoutMetadata } from "../../src/payments/checkout-sessions/Metadata.ts"
import { sessionParams } from "../../src/payments/checkout-sessions/StripeCheckoutSessions.ts"
import {
  carriedParams,
  paymentLinkChangeParams,
  paymentLinkParams
} from "../../src/payments/payment-links/StripePaymentLinks.ts"
import { CreateRefund, ListOfPayments, ListPayments } from "../../src/payments/payments/Api.ts"
import { refundParams } from "../../src/payments/payments/StripePayments.ts"
import { priceChangeParams, priceParams, pricesParams } from "../../src/payments/prices/StripePrices.ts"
import { productChangeParams, productParams } from "../../src/payments/products/StripeProducts.ts"
import {
  couponParams,
  promotionCodeChangeParams,
  promotionCodeParams
} from "../../src/payments/promotion-codes/StripePromotionCodes.ts"
import { withTimeRange } from "../../src/payments/stripe/StripeObjects.ts"
import { ListSubscriptions, UpdateSubscription } from "../../src/payments/subscriptions/Api.ts"
import { subscriptionsParams, updateSubscriptionParams } from "../../src/payments/subscriptions/StripeSubscriptions.ts"
import {
  checkoutSessions,
  paymentLinkChanges,
  paymentLinks,
  priceChanges,
  priceLists,
  prices,
  productChanges,
  products,
  promotionCodeChanges,
  promotionCodes
} from "../payments/CatalogBodies.ts"
import { providerChecks } from "./ProviderSchemas.ts"

const check = providerChecks({
  coupon: { file: "Coupons", name: "CouponCreateParams" },
  paymentLink: { file: "PaymentLinks", name: "PaymentLinkCreateParams" },
  paymentLinkChange: { file: "PaymentLinks", name: "PaymentLinkUpdateParams" },
  carriedMetadata: { file: "PaymentLinks", name: "PaymentLinkUpdateParams" },
  price: { file: "Prices", name: "PriceCreateParams" },
  priceChange: { file: "Prices", name: "PriceUpdateParams" },
  prices: { file: "Prices", name: "PriceListParams" },
  product: { file: "Products", name: "ProductCreateParams" },
  productChange: { file: "Products", name: "ProductUpdateParams" },
  promotionCode: { file: "PromotionCodes", name: "PromotionCodeCreateParams" },
  promotionCodeChange: { file: "PromotionCodes", name: "PromotionCodeUpdateParams" },
  session: { file: "Checkout/Sessions", name: "Checkout.SessionCreateParams" },
  charges: { file: "Charges", name: "ChargeListParams" },
  customers: { file: "Customers", name: "CustomerListParams" },
  disputes: { file: "Disputes", name: "DisputeListParams" },
  checkoutSessions: { file: "Checkout/Sessions", name: "Checkout.SessionListParams" },
  paymentIntents: { file: "PaymentIntents", name: "PaymentIntentListParams" },
  payouts: { file: "Payouts", name: "PayoutListParams" },
  refund: { file: "Refunds", name: "RefundCreateParams" },
  refunds: { file: "Refunds", name: "RefundListParams" },
  subscription: { file: "Subscriptions", name: "SubscriptionUpdateParams" },
  subscriptions: { file: "Subscriptions", name: "SubscriptionListParams" },
  transactions: { file: "BalanceTransactions", name: "BalanceTransactionListParams" }
})

type Kind = Parameters<typeof check>[0]

const urls = { checkoutSuccessUrl: "https://shop.example/thanks", checkoutCancelUrl: "https://shop.example/cart" }

const page = FastCheck.option(FastCheck.webUrl(), { nil: null })

const returnUrls = FastCheck.record({ successUrl: page, cancelUrl: page })

const trials = FastCheck.option(FastCheck.integer({ min: 1, max: 730 }))

/** Everything that a schema of the API admits, as handlers get it. */
const admitted = <A, I>(schema: Schema.Schema<A, I>) => Arbitrary.make(Schema.typeSchema(schema))

/** What goes out, by the type that the provider's package has for it. */
const requests: Readonly<Record<Kind, FastCheck.Arbitrary<object>>> = {
  coupon: promotionCodes.map(({ code: _, expires_at: __, max_redemptions: ___, metadata: ____, ...coupon }) =>
    couponParams({ ...coupon, id: "svc_1" })
  ),
  paymentLink: FastCheck.record({
    body: paymentLinks,
    mode: FastCheck.constantFrom("payment" as const, "subscription" as const),
    trialPeriodDays: trials
  }).map(({ body, mode, trialPeriodDays }) => paymentLinkParams({ ...body, mode, trialPeriodDays })),
  paymentLinkChange: paymentLinkChanges.map(paymentLinkChangeParams),
  carriedMetadata: FastCheck.record({
    mode: FastCheck.constantFrom("payment" as const, "subscription" as const),
    metadata: Arbitrary.make(CheckoutMetadata)
  }).map(carriedParams),
  price: prices.map(priceParams),
  priceChange: priceChanges.map(priceChangeParams),
  prices: priceLists.map(pricesParams),
  product: products.map(productParams),
  productChange: productChanges.map(({ default_price_data: _, ...changes }) => productChangeParams(changes)),
  promotionCode: promotionCodes.map(({ discount: _, duration: __, duration_in_months: ___, products: ____, ...code }) =>
    promotionCodeParams({ ...code, coupon: "svc_1" })
  ),
  promotionCodeChange: promotionCodeChanges.map(promotionCodeChangeParams),
  session: FastCheck.record({ body: checkoutSessions, trialPeriodDays: trials, returnUrls }).map(({ body, ...terms }) =>
    sessionParams({ ...body, ...terms }, urls)
  ),
  charges: admitted(ListPayments).map(withTimeRange),
  checkoutSessions: admitted(ListCheckoutSessions).map(withTimeRange),
  paymentIntents: admitted(ListPayments).map(withTimeRange),
  customers: admitted(ListPayments).map(withTimeRange),
  disputes: admitted(ListOfPayments).map(withTimeRange),
  refunds: admitted(ListOfPayments).map(withTimeRange),
  subscription: admitted(UpdateSubscription).map(updateSubscriptionParams),
  payouts: admitted(ListPayouts).map(withTimeRange),
  refund: admitted(CreateRefund).map(refundParams),
  subscriptions: admitted(ListSubscriptions).map(subscriptionsParams),
  transactions: admitted(ListBalanceTransactions).map(withTimeRange)
}

// The keys of the record above are kinds, which `Object.entries` can't say
const kinds = Object.entries(requests).map(([kind, request]) => ({ kind: kind as Kind, request }))

/** Keys that the service must never send: whose money it is, and how it is paid, are not for callers to say. */
const forbidden = /^(application_fee|transfer_data|on_behalf_of|payment_method_types|usage_type)/

const keysIn = (value: unknown): ReadonlyArray<string> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, part]) => (key === "metadata" ? [key] : [key, ...keysIn(part)]))

describe("requests to the provider", () => {
  it.each(kinds)(
    "of the kind $kind fit the provider's own type and never say whose money it is, whatever the caller sends",
    ({ kind, request }) => {
      FastCheck.assert(
        FastCheck.property(request, (params) => {
          expect(check(kind)(params), JSON.stringify(params)).toEqual([])
          expect(keysIn(params).filter((key) => forbidden.test(key))).toEqual([])
        }),
        { numRuns: 100 }
      )
    }
  )

  it.each(kinds)("of the kind $kind are held against types that refuse what they do not know", ({ kind, request }) => {
    const [params] = FastCheck.sample(request, 1)
    expect(check(kind)({ ...params, no_such_parameter: 1 })).toHaveLength(1)
    // Which no list takes, and so is refused in any form
    expect(check(kind)({ ...params, metadata: 5 }).length).toBeGreaterThan(0)
  })

  it("carry a range of times as the provider has it, and nothing of the API's own names", () => {
    const range = { created_gte: 1, created_lte: 2 }
    expect(withTimeRange({ ...range, limit: 5 })).toEqual({ limit: 5, created: { gte: 1, lte: 2 } })
    expect(withTimeRange({ created_gte: 0 })).toEqual({ created: { gte: 0 } })
    expect(withTimeRange({ created_lte: 2, payout: "po_1", type: "charge" })).toEqual({
      created: { lte: 2 },
      payout: "po_1",
      type: "charge"
    })
    expect(withTimeRange({})).toEqual({})
  })

  it("for a refund leave fees and transfers alone", () => {
    FastCheck.assert(
      FastCheck.property(admitted(CreateRefund), (body) => {
        expect(["payment_intent", "charge"].filter((key) => key in refundParams(body))).toHaveLength(1)
        expect(Object.keys(refundParams(body)).filter((key) => /fee|transfer|currency|origin/.test(key))).toEqual([])
      })
    )
  })
})
