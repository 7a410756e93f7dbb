import { Effect } from "effect"
import type Stripe from "stripe"
import type {
  ChangeObject,
  ConnectedAccount,
  CreateObject,
  ListObjects,
  ProviderCall,
  RetrieveObject
} from "../ProviderCall.ts"
import { inOurNames } from "../RefusalReasons.ts"
import { explainRounding } from "../RoundedAmounts.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { StripeCall } from "../stripe/StripeCall.ts"
import { metadataParams, stripeObjects } from "../stripe/StripeObjects.ts"
import type { CreatePromotionCode, ListPromotionCodes, UpdatePromotionCode } from "./Api.ts"

export type NewCoupon = Pick<CreatePromotionCode, "discount" | "duration" | "duration_in_months" | "products"> & {
  readonly id: string
}

export type NewPromotionCode = Pick<CreatePromotionCode, "code" | "max_redemptions" | "expires_at" | "metadata"> & {
  readonly coupon: string
}

/** The provider's operations on coupons and promotion codes; it returns codes with their coupon and its products. */
export interface PromotionCodesPort {
  readonly createCoupon: CreateObject<NewCoupon>
  readonly deleteCoupon: (account: ConnectedAccount, id: string) => ProviderCall<void>
  readonly createPromotionCode: CreateObject<NewPromotionCode>
  readonly updatePromotionCode: ChangeObject<UpdatePromotionCode>
  readonly retrievePromotionCode: RetrieveObject
  /** `code` matches as payers enter it, in upper or lower case. */
  readonly listPromotionCodes: ListObjects<ListPromotionCodes & { readonly code?: string }>
}

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

export const stripePromotionCodes = (call: StripeCall): PromotionCodesPort => {
  const { create, list, retrieve, update } = stripeObjects(call)
  const createCoupon = create("coupons.create", (client) => client.coupons, couponParams)
  const codes = (client: Stripe) => client.promotionCodes
  const createCode = create("promotionCodes.create", codes, promotionCodeParams)
  const updateCode = update("promotionCodes.update", codes, promotionCodeChangeParams)
  const retrieveCode = retrieve("promotionCodes.retrieve", codes, expanded)
  const listCodes = list("promotionCodes.list", codes, (params: ListPromotionCodes & { readonly code?: string }) => ({
    ...params,
    expand: ["data.promotion.coupon.applies_to"]
  }))
  return {
    createCoupon: (account, params, options) =>
      createCoupon(account, params, options).pipe(
        Effect.mapError(inOurNames(couponFieldNames)),
        Effect.mapError(explainRounding("currency" in params.discount ? params.discount.currency : undefined))
      ),
    deleteCoupon: (account, id) =>
      Effect.asVoid(call("coupons.del", account, (client, scope) => client.coupons.del(id, {}, scope))),
    createPromotionCode: (...request) => Effect.map(createCode(...request), withCoupon),
    updatePromotionCode: (...request) => Effect.map(updateCode(...request), withCoupon),
    retrievePromotionCode: (...request) => Effect.map(retrieveCode(...request), withCoupon),
    listPromotionCodes: (...request) =>
      Effect.map(listCodes(...request), (page) => ({ ...page, data: page.data.map(withCoupon) }))
  }
}
