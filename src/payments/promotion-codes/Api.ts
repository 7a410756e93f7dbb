import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { ProductIdText } from "../../events/Filters.ts"
import { remark, rule } from "../../platform/bounds/Rules.ts"
import { text } from "../../platform/bounds/Text.ts"
import { BooleanFromQuery, described, optional, pageFields, strict } from "../../platform/kit/Request.ts"
import { CheckoutMetadata, CheckoutMetadataChanges } from "../checkout-sessions/Metadata.ts"
import { NeededCalls, providerCreate, providerGet, providerGroup, providerList, providerUpdate } from "../Endpoints.ts"
import { type BrokenRule, Currency, UnitAmount } from "../Schemas.ts"

const discountRules = (discount: {
  readonly percent_off?: number
  readonly amount_off?: number
  readonly currency?: string
}): ReadonlyArray<BrokenRule> => {
  const { amount_off, currency, percent_off } = discount
  if (percent_off === undefined && amount_off === undefined) {
    return [{ path: [], message: "must have percent_off, or amount_off with currency" }]
  }
  return [
    ...(percent_off !== undefined && amount_off !== undefined
      ? [{ path: ["amount_off"], message: "is not accepted together with percent_off: send one of the two" }]
      : []),
    ...(amount_off !== undefined && currency === undefined
      ? [{ path: ["currency"], message: "is missing; amount_off needs it: a lowercase ISO 4217 code, such as brl" }]
      : []),
    ...(amount_off === undefined && currency !== undefined
      ? [{ path: ["currency"], message: "is accepted only together with amount_off" }]
      : [])
  ]
}

/** Either a percentage or a fixed amount in a currency. */
export const Discount = Schema.Struct({
  percent_off: optional(Schema.Finite.pipe(Schema.between(0.01, 100)), "Percentage, 0.01 to 100"),
  amount_off: optional(
    UnitAmount.pipe(Schema.greaterThanOrEqualTo(1)),
    "The amount taken off, in the smallest currency unit"
  ),
  currency: optional(Currency)
})
  .pipe(Schema.filter(discountRules))
  .annotations({
    ...rule("must be an object with percent_off, or with amount_off and currency"),
    identifier: "CreatePromotionCodeDiscount"
  })

const durationRules = (code: {
  readonly duration: string
  readonly duration_in_months?: number
}): ReadonlyArray<BrokenRule> => {
  const given = code.duration_in_months !== undefined
  return given === (code.duration === "repeating")
    ? []
    : [
        {
          path: ["duration_in_months"],
          message: given
            ? "is accepted only with the duration repeating"
            : "is missing; the duration repeating needs it: a whole number from 1 to 36"
        }
      ]
}

/** Body of `POST P/promotion-codes` (contract 4.8): creates the coupon and the code in one step. */
export const CreatePromotionCode = strict(
  Schema.Struct({
    code: text({
      min: 3,
      max: 40,
      pattern: /^[A-Za-z0-9]+$/,
      rule: "must be 3 to 40 letters from A to Z and digits, such as SUMMER25"
    }).annotations({
      description: "The code that payers enter: letters and digits, unique among the active codes regardless of case",
      examples: ["SUMMER25"]
    }),
    discount: described(Discount, "`percent_off`, or `amount_off` with `currency`"),
    duration: described(
      Schema.Literal("once", "forever", "repeating").annotations({ identifier: "CreatePromotionCodeDuration" }),
      "How long it applies to a subscription"
    ),
    duration_in_months: optional(Schema.Int.pipe(Schema.between(1, 36)), "With `repeating`, and only then"),
    max_redemptions: optional(Schema.Int.pipe(Schema.between(1, 1_000_000)), "The number of times it can be used"),
    expires_at: optional(
      Schema.Int.pipe(Schema.between(0, 4_102_444_800)).annotations({
        ...remark("of Unix seconds"),
        description: "Unix seconds"
      })
    ),
    products: optional(
      Schema.Array(ProductIdText)
        .pipe(Schema.minItems(1), Schema.maxItems(100))
        .annotations({ description: "The products that the discount is on; without it, all" })
    ),
    metadata: optional(CheckoutMetadata)
  })
    .pipe(Schema.filter(durationRules))
    .annotations({ identifier: "CreatePromotionCode" })
)
export type CreatePromotionCode = typeof CreatePromotionCode.Type

export const UpdatePromotionCode = strict(
  Schema.Struct({
    active: optional(Schema.Boolean, "False means that payers can't use it"),
    metadata: optional(CheckoutMetadataChanges)
  }).annotations({ identifier: "UpdatePromotionCode" })
)
export type UpdatePromotionCode = typeof UpdatePromotionCode.Type

export const ListPromotionCodes = strict(Schema.Struct({ ...pageFields, active: optional(BooleanFromQuery) }))
export type ListPromotionCodes = typeof ListPromotionCodes.Type

export class PromotionCodesApi extends providerGroup(
  "promotionCodes",
  "Promotion codes on the organization's connected account"
)
  .add(
    providerCreate("/promotion-codes", "coupons:write", "Create a promotion code")
      .setPayload(CreatePromotionCode)
      .annotate(NeededCalls, ["listPromotionCodes", "createCoupon", "deleteCoupon", "createPromotionCode"])
      .annotate(
        OpenApi.Description,
        'Creates the coupon and its code in one step; the answer shows the coupon as `coupon`. A code that is already active is refused with `provider_resource_already_exists`, `fields: ["code"]`, and no coupon is left behind.'
      )
  )
  .add(
    providerList("/promotion-codes", "coupons:read", "List promotion codes, each with its coupon").setUrlParams(
      ListPromotionCodes
    )
  )
  .add(providerGet("/promotion-codes/:id", "coupons:read", "Read a promotion code, with its coupon"))
  .add(
    providerUpdate(
      "/promotion-codes/:id",
      "coupons:write",
      "Activate or deactivate a promotion code, or change its metadata"
    )
      .setPayload(UpdatePromotionCode)
      .annotate(OpenApi.Description, "Absent fields are unchanged, and `metadata` is merged.")
  ) {}
