import { Effect, Schema } from "effect"
import { maximumAmount } from "../../Amounts.ts"
import * as Params from "../../api/Params.ts"
import { named, noParams, type RequestContext, type Route } from "../../api/Route.ts"
import { newCode } from "../../Ids.ts"
import { type Check, firstOf, invalid } from "../../ProviderError.ts"
import { type Coupon, given } from "../../Records.ts"
import { resource } from "../Resource.ts"

const createParams = Schema.Struct({
  amount_off: Params.optional(Params.integer(1, maximumAmount)),
  applies_to: Params.optional(Schema.Struct({ products: Params.listOf(Params.text()) })),
  currency: Params.optional(Params.currency),
  duration: Params.optional(Params.oneOf("forever", "once", "repeating")),
  duration_in_months: Params.optional(Params.integer(1)),
  id: Params.optional(Params.matching(/^[A-Za-z0-9_-]{1,200}$/, "id")),
  max_redemptions: Params.optional(Params.integer(1)),
  metadata: Params.optional(Params.metadata),
  name: Params.optional(Params.text(40)),
  percent_off: Params.optional(Params.percent),
  redeem_by: Params.optional(Params.integer())
})

type CreateParams = typeof createParams.Type

const updateParams = Schema.Struct({
  metadata: Params.optional(Params.metadata),
  name: Params.optional(Params.clearable(Params.text(40)))
})

const checkTerms = (now: number, params: CreateParams): Check => {
  const { amount_off, currency, duration, duration_in_months, percent_off, redeem_by } = params
  return firstOf(
    amount_off === undefined &&
      percent_off === undefined &&
      invalid("percent_off", "You must pass either `amount_off` or `percent_off`.", "parameter_missing"),
    amount_off !== undefined &&
      percent_off !== undefined &&
      invalid("percent_off", "You cannot pass both `amount_off` and `percent_off`.", "parameters_exclusive"),
    amount_off !== undefined &&
      currency === undefined &&
      invalid("currency", "You must pass `currency` when passing `amount_off`.", "parameter_missing"),
    duration === "repeating" &&
      duration_in_months === undefined &&
      invalid("duration_in_months", "`duration_in_months` is required with a repeating duration.", "parameter_missing"),
    duration !== "repeating" &&
      duration_in_months !== undefined &&
      invalid("duration_in_months", "`duration_in_months` can only be passed with a repeating duration."),
    redeem_by !== undefined &&
      redeem_by <= now &&
      invalid("redeem_by", "The `redeem_by` timestamp must be in the future.")
  )
}

const checkProducts = (context: RequestContext, { applies_to }: CreateParams) =>
  Effect.forEach(applies_to?.products ?? [], (id, index) =>
    named(context, "product", id, `applies_to[products][${index}]`)
  )

const makeCoupon = (id: string, created: number, params: CreateParams): Coupon => ({
  id,
  object: "coupon",
  ...given(params, "amount_off duration_in_months max_redemptions name percent_off redeem_by"),
  ...(params.applies_to === undefined ? {} : { applies_to: params.applies_to }),
  created,
  currency: params.amount_off === undefined ? null : (params.currency ?? null),
  duration: params.duration ?? "once",
  livemode: false,
  metadata: Params.patchMetadata({}, params.metadata),
  times_redeemed: 0,
  valid: true
})

const create = Effect.fnUntraced(function* (context: RequestContext, params: CreateParams) {
  const id = params.id ?? newCode()
  if (context.objects.get("coupon", id) !== undefined) {
    return yield* invalid("id", "Coupon already exists.", "resource_already_exists")
  }
  yield* checkTerms(context.now, params)
  yield* checkProducts(context, params)
  return context.save("coupon", "coupon.created", makeCoupon(id, context.now, params))
})

/** The coupon with its current state: `valid` until its last redemption or its deadline. */
export const currentCoupon = (coupon: Coupon, now: number): Coupon => ({
  ...coupon,
  valid:
    (coupon.redeem_by === null || coupon.redeem_by > now) &&
    (coupon.max_redemptions === null || coupon.times_redeemed < coupon.max_redemptions)
})

const coupons = resource("/v1/coupons", "coupon", ({ now }, coupon) => currentCoupon(coupon, now))

const update = (context: RequestContext, { metadata, ...rest }: typeof updateParams.Type, before: Coupon) =>
  Effect.sync(() => {
    const coupon: Coupon = { ...before, ...rest, metadata: Params.patchMetadata(before.metadata ?? {}, metadata) }
    return context.save("coupon", "coupon.updated", coupon, before)
  })

/** Deleting a coupon deactivates its promotion codes: they remain, but can never be used again. */
const remove = (context: RequestContext, _: object, coupon: Coupon) =>
  Effect.sync(() => {
    const { id } = coupon
    context.objects.remove("coupon", id)
    for (const code of context.objects.all("promotion_code")) {
      if (code.promotion.coupon === id && code.active) {
        context.objects.put("promotion_code", code.id, { ...code, active: false })
      }
    }
    context.emit({ type: "coupon.deleted", shape: "coupon", object: coupon })
    return { id, object: "coupon", deleted: true }
  })

export const couponRoutes: ReadonlyArray<Route> = [
  coupons.create(createParams, create),
  coupons.list(Params.optionals({ created: Params.range })),
  coupons.get,
  coupons.update(updateParams, update),
  coupons.remove("deleted")(noParams, remove)
]
