import { Effect } from "effect"
import type Stripe from "stripe"
import { inOurNames } from "../RefusedFields.ts"
import { explainRounding } from "../RoundedAmounts.ts"
import type { ProviderObject } from "../Schemas.ts"
import { named, one, page, type StripeCall } from "../stripe/StripeCall.ts"
import { metadataParams } from "../stripe/StripeMetadata.ts"
import type { UpdatePromotionCode } from "./Api.ts"
import type { NewCoupon, NewPromotionCode, PromotionCodesPort } from "./Port.ts"

const expanded = { expand: ["promotion.coupon.applies_to"] }

/** A code with its coupon as `coupon`, which Stripe shows inside `promotion` (contract 4.4). */
const withCoupon = (code: ProviderObject): ProviderObject => {
  const { promotion } = code
  return typeof promotion === "object" && promotion !== null && "coupon" in promotion
    ? { ...code, coupon: promotion.coupon }
    : code
}

export const couponParams = ({ discount, products, ...rest }: NewCoupon): Stripe.CouponCreateParams => ({
  ...rest,
  ...discount,
  ...(products === undefined ? {} : { applies_to: { products: [...products] } })
})

export const promotionCodeParams = ({
  coupon,
  metadata,
  ...rest
}: NewPromotionCode): Stripe.PromotionCodeCreateParams => ({
  ...rest,
  ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
  promotion: { type: "coupon", coupon },
  ...expanded
})

export const promotionCodeChangeParams = ({
  metadata,
  ...rest
}: UpdatePromotionCode): Stripe.PromotionCodeUpdateParams => ({
  ...rest,
  ...metadataParams(metadata),
  ...expanded
})

const couponFieldNames = {
  percent_off: "discount.percent_off",
  amount_off: "discount.amount_off",
  currency: "discount.currency",
  "applies_to.products": "products",
  applies_to: "products"
} as const

export const stripePromotionCodes = (call: StripeCall): PromotionCodesPort => ({
  createCoupon: (account, params, { idempotencyKey }) =>
    one(
      call("coupons.create", account, (client, scope) =>
        client.coupons.create(couponParams(params), { ...scope, idempotencyKey })
      )
    ).pipe(
      Effect.mapError(inOurNames(couponFieldNames)),
      Effect.mapError(explainRounding("currency" in params.discount ? params.discount.currency : undefined))
    ),
  deleteCoupon: (account, id) =>
    Effect.asVoid(call("coupons.del", account, (client, scope) => client.coupons.del(id, {}, scope))),

  createPromotionCode: (account, params, { idempotencyKey }) =>
    one(
      call("promotionCodes.create", account, (client, scope) =>
        client.promotionCodes.create(promotionCodeParams(params), { ...scope, idempotencyKey })
      )
    ).pipe(Effect.map(withCoupon)),
  updatePromotionCode: (account, id, changes, { idempotencyKey }) =>
    named(
      call("promotionCodes.update", account, (client, scope) =>
        client.promotionCodes.update(id, promotionCodeChangeParams(changes), { ...scope, idempotencyKey })
      )
    ).pipe(Effect.map(withCoupon)),
  retrievePromotionCode: (account, id) =>
    named(
      call("promotionCodes.retrieve", account, (client, scope) => client.promotionCodes.retrieve(id, expanded, scope))
    ).pipe(Effect.map(withCoupon)),
  listPromotionCodes: (account, params) =>
    page(
      call("promotionCodes.list", account, (client, scope) =>
        client.promotionCodes.list({ ...params, expand: ["data.promotion.coupon.applies_to"] }, scope)
      )
    ).pipe(Effect.map((list) => ({ ...list, data: list.data.map(withCoupon) })))
})
