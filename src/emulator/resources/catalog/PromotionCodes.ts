import { Effect, Schema } from "effect"
import * as Params from "../../api/Params.ts"
import { named, type RequestContext, type Route } from "../../api/Route.ts"
import { newCode, newId } from "../../Ids.ts"
import { type Check, firstOf, invalid, refuse } from "../../ProviderError.ts"
import { type Coupon, given, nulls, type PromotionCode } from "../../Records.ts"
import { resource } from "../Resource.ts"
import { currentCoupon } from "./Coupons.ts"

const createParams = Schema.Struct({
  active: Params.optional(Params.boolean),
  code: Params.optional(Params.matching(/^[A-Za-z0-9-]{1,500}$/, "code")),
  expires_at: Params.optional(Params.integer()),
  max_redemptions: Params.optional(Params.integer(1)),
  metadata: Params.optional(Params.metadata),
  promotion: Schema.Struct({ coupon: Params.text(), type: Params.oneOf("coupon") })
})

type CreateParams = typeof createParams.Type

const updateParams = Schema.Struct({
  active: Params.optional(Params.boolean),
  metadata: Params.optional(Params.metadata)
})

/** Active while it is enabled, its coupon is valid and its own limits are not reached. */
export const currentPromotionCode = ({ now, objects }: RequestContext, code: PromotionCode): PromotionCode => {
  const coupon = objects.get("coupon", code.promotion.coupon)
  const usable =
    coupon !== undefined &&
    currentCoupon(coupon, now).valid &&
    (code.expires_at === null || code.expires_at > now) &&
    (code.max_redemptions === null || code.times_redeemed < code.max_redemptions)
  return { ...code, active: code.active && usable }
}

const sameCode = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

export const activePromotionCode = (context: RequestContext, code: string): PromotionCode | undefined =>
  context.objects
    .all("promotion_code")
    .map((candidate) => currentPromotionCode(context, candidate))
    .find((candidate) => candidate.active && sameCode(candidate.code, code))

const checkUnique = (context: RequestContext, code: string): Check =>
  activePromotionCode(context, code) === undefined
    ? Effect.void
    : refuse({ message: `An active promotion code with \`code: ${code}\` already exists.` })

const checkBounds = (now: number, coupon: Coupon, { expires_at, max_redemptions }: CreateParams): Check =>
  firstOf(
    expires_at !== undefined &&
      expires_at <= now &&
      invalid("expires_at", "The `expires_at` timestamp must be in the future."),
    expires_at !== undefined &&
      coupon.redeem_by !== null &&
      expires_at > coupon.redeem_by &&
      invalid("expires_at", "The `expires_at` timestamp cannot be after the coupon's `redeem_by`."),
    max_redemptions !== undefined &&
      coupon.max_redemptions !== null &&
      max_redemptions > coupon.max_redemptions &&
      invalid("max_redemptions", "`max_redemptions` cannot be greater than that of the coupon.")
  )

const usableCoupon = Effect.fnUntraced(function* (context: RequestContext, id: string) {
  const coupon = yield* named(context, "coupon", id, "promotion[coupon]")
  if (currentCoupon(coupon, context.now).valid) return coupon
  return yield* invalid("promotion[coupon]", `The coupon ${id} can no longer be redeemed.`)
})

const create = Effect.fnUntraced(function* (context: RequestContext, params: CreateParams) {
  const coupon = yield* usableCoupon(context, params.promotion.coupon)
  yield* checkBounds(context.now, coupon, params)
  const code = params.code ?? newCode()
  if (params.active !== false) yield* checkUnique(context, code)
  return context.save("promotion_code", "promotion_code.created", {
    id: newId("promo_"),
    object: "promotion_code",
    active: params.active ?? true,
    code,
    created: context.now,
    ...nulls("customer customer_account"),
    ...given(params, "expires_at max_redemptions"),
    livemode: false,
    metadata: Params.patchMetadata({}, params.metadata),
    promotion: params.promotion,
    restrictions: { first_time_transaction: false, minimum_amount: null, minimum_amount_currency: null },
    times_redeemed: 0
  })
})

const codes = resource("/v1/promotion_codes", "promotion_code", currentPromotionCode)

/** Checks that a code can be activated: it is not used up, and no other active one has the same code. */
const checkActivation = Effect.fnUntraced(function* (context: RequestContext, before: PromotionCode) {
  if (!currentPromotionCode(context, { ...before, active: true }).active) {
    return yield* invalid(
      "active",
      "This promotion code cannot be activated: it or its coupon has expired or is used up."
    )
  }
  yield* checkUnique(context, before.code)
})

const update = Effect.fnUntraced(function* (
  context: RequestContext,
  params: typeof updateParams.Type,
  before: PromotionCode
) {
  if (params.active === true && !before.active) yield* checkActivation(context, before)
  const metadata = yield* Params.changedMetadata(before.metadata ?? {}, params.metadata)
  const code: PromotionCode = { ...before, active: params.active ?? before.active, metadata }
  return context.save("promotion_code", "promotion_code.updated", code, before)
})

export const promotionCodeRoutes: ReadonlyArray<Route> = [
  codes.create(createParams, create),
  codes.list(
    Params.optionals({
      active: Params.boolean,
      code: Params.text(),
      coupon: Params.text(),
      created: Params.range
    }),
    {
      matches: {
        code: ({ code }, asked = code) => sameCode(code, asked),
        coupon: ({ promotion: { coupon } }, asked = coupon) => coupon === asked
      },
      noun: "promotion code"
    }
  ),
  codes.get,
  codes.update(updateParams, update)
]
