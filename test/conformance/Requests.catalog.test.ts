import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { sessionParams } from "../../src/provider/checkout/StripeCheckout.ts"
import { paymentLinkParams } from "../../src/provider/payment-links/StripePaymentLinks.ts"
import { priceParams } from "../../src/provider/prices/StripePrices.ts"
import { productChangeParams, productParams } from "../../src/provider/products/StripeProducts.ts"
import { couponParams, promotionCodeParams } from "../../src/provider/promotion-codes/StripePromotionCodes.ts"
import {
  checkoutSessions,
  paymentLinks,
  prices,
  productChanges,
  products,
  promotionCodes
} from "../provider/CatalogBodies.ts"
import { providerChecks } from "./ProviderSchemas.ts"

const check = providerChecks({
  coupon: { file: "Coupons", name: "CouponCreateParams" },
  paymentLink: { file: "PaymentLinks", name: "PaymentLinkCreateParams" },
  price: { file: "Prices", name: "PriceCreateParams" },
  product: { file: "Products", name: "ProductCreateParams" },
  productChange: { file: "Products", name: "ProductUpdateParams" },
  promotionCode: { file: "PromotionCodes", name: "PromotionCodeCreateParams" },
  session: { file: "Checkout/Sessions", name: "Checkout.SessionCreateParams" }
})

type Kind = Parameters<typeof check>[0]

const urls = { checkoutSuccessUrl: "https://shop.example/thanks", checkoutCancelUrl: "https://shop.example/cart" }

const trials = FastCheck.option(FastCheck.integer({ min: 1, max: 730 }))

/** What goes out, by the type that the provider's package has for it. */
const requests: Readonly<Record<Kind, FastCheck.Arbitrary<object>>> = {
  coupon: promotionCodes.map(({ code: _, expires_at: __, max_redemptions: ___, ...coupon }) =>
    couponParams({ ...coupon, id: "svc_1" })
  ),
  paymentLink: FastCheck.record({
    body: paymentLinks,
    mode: FastCheck.constantFrom("payment" as const, "subscription" as const),
    trialPeriodDays: trials
  }).map(({ body, mode, trialPeriodDays }) => paymentLinkParams({ ...body, mode, trialPeriodDays })),
  price: prices.map(priceParams),
  product: products.map(productParams),
  productChange: productChanges.map(({ default_price_data: _, ...changes }) => productChangeParams(changes)),
  promotionCode: promotionCodes.map(({ discount: _, duration: __, duration_in_months: ___, products: ____, ...code }) =>
    promotionCodeParams({ ...code, coupon: "svc_1" })
  ),
  session: FastCheck.record({ body: checkoutSessions, trialPeriodDays: trials }).map(({ body, trialPeriodDays }) =>
    sessionParams({ ...body, trialPeriodDays }, urls)
  )
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
  it.each(kinds)("of the kind $kind fit the provider's own type, whatever the caller sends", ({ kind, request }) => {
    FastCheck.assert(
      FastCheck.property(request, (params) => {
        expect(check(kind)(params), JSON.stringify(params)).toEqual([])
      }),
      { numRuns: 100 }
    )
  })

  it.each(kinds)("of the kind $kind never say whose money it is", ({ request }) => {
    FastCheck.assert(
      FastCheck.property(request, (params) => {
        expect(keysIn(params).filter((key) => forbidden.test(key))).toEqual([])
      })
    )
  })

  it.each(kinds)("of the kind $kind are held against types that refuse what they do not know", ({ kind, request }) => {
    const [params] = FastCheck.sample(request, 1)
    expect(check(kind)({ ...params, no_such_parameter: 1 })).toHaveLength(1)
    expect(check(kind)({ ...params, metadata: 5 }).length).toBeGreaterThan(0)
  })
})
