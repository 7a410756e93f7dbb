import { Effect, Schema } from "effect"
import { amountForms, amountStep, maximumAmount } from "../../Amounts.ts"
import * as Params from "../../api/Params.ts"
import type { RequestContext } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import { type Check, firstOf, invalid } from "../../ProviderError.ts"
import { given, type Price, type PriceTier } from "../../Records.ts"

const amount = Params.integer(0, maximumAmount)

const recurring = Schema.Struct({
  interval: Params.oneOf("day", "week", "month", "year"),
  interval_count: Params.optional(Params.integer(1, 1_095)),
  trial_period_days: Params.optional(Params.integer(1, 730)),
  usage_type: Params.optional(Params.oneOf("licensed"))
})

const customUnitAmount = Schema.Struct({
  enabled: Params.boolean,
  maximum: Params.optional(amount),
  minimum: Params.optional(amount),
  preset: Params.optional(amount)
})

const lastTier = Params.oneOf("inf")

const tier = Schema.Struct({
  flat_amount: Params.optional(amount),
  flat_amount_decimal: Params.optional(Params.decimal),
  unit_amount: Params.optional(amount),
  unit_amount_decimal: Params.optional(Params.decimal),
  up_to: Schema.Union(lastTier, Params.integer(1))
})

/** The parameters for the amount of a price that is created with its product (`default_price_data`). */
export const amountParams = {
  currency: Params.currency,
  custom_unit_amount: Params.optional(customUnitAmount),
  metadata: Params.optional(Params.metadata),
  recurring: Params.optional(recurring),
  tax_behavior: Params.optional(Params.oneOf("exclusive", "inclusive", "unspecified")),
  unit_amount: Params.optional(amount),
  unit_amount_decimal: Params.optional(Params.decimal)
}

/** Further parameters of a price that is created on its own. */
export const pricingParams = {
  ...amountParams,
  active: Params.optional(Params.boolean),
  billing_scheme: Params.optional(Params.oneOf("per_unit", "tiered")),
  lookup_key: Params.optional(Params.text(200)),
  nickname: Params.optional(Params.text()),
  tiers: Params.optional(Params.listOf(tier)),
  tiers_mode: Params.optional(Params.oneOf("graduated", "volume")),
  transform_quantity: Params.optional(
    Schema.Struct({ divide_by: Params.integer(1), round: Params.oneOf("down", "up") })
  )
}

const pricing = Schema.Struct(pricingParams)
type Pricing = typeof pricing.Type
type TierParams = typeof tier.Type

const exclusive = (param: string, message: string): Check => invalid(param, message, "parameters_exclusive")

const checkOneAmount = (params: Pricing, name: (param: string) => string): Check => {
  const given = (["unit_amount", "unit_amount_decimal", "custom_unit_amount", "tiers"] as const).filter(
    (param) => params[param] !== undefined
  )
  const [first, second] = given
  if (first === undefined) {
    return invalid(
      name("unit_amount"),
      "Prices require an `unit_amount`, `unit_amount_decimal`, `custom_unit_amount` or `tiers` to be set.",
      "parameter_missing"
    )
  }
  return second === undefined
    ? Effect.void
    : exclusive(name(second), `You may only specify one of these parameters: ${given.join(", ")}.`)
}

const checkTierBounds = (tiers: ReadonlyArray<TierParams>): Check => {
  const wrong = tiers.findIndex(({ up_to }, index) => {
    const previous = tiers[index - 1]?.up_to ?? 0
    return index === tiers.length - 1 ? up_to !== "inf" : up_to === "inf" || (previous !== "inf" && up_to <= previous)
  })
  return wrong < 0 && tiers.length > 0
    ? Effect.void
    : invalid(`tiers[${Math.max(wrong, 0)}][up_to]`, "Tiers must have rising `up_to` values, the last of them `inf`.")
}

const checkTierAmounts = (tiers: ReadonlyArray<TierParams>): Check => {
  const wrong = tiers.findIndex((one) => {
    const units = [one.unit_amount, one.unit_amount_decimal].filter((value) => value !== undefined).length
    const flats = [one.flat_amount, one.flat_amount_decimal].filter((value) => value !== undefined).length
    return units > 1 || flats > 1 || units + flats === 0
  })
  return wrong < 0
    ? Effect.void
    : invalid(
        `tiers[${wrong}]`,
        "A tier needs a unit amount, a flat amount or both, each as an integer or as a decimal."
      )
}

const checkTiers = ({ billing_scheme, tiers, tiers_mode, transform_quantity }: Pricing): Check => {
  if (billing_scheme !== "tiered") {
    if (tiers !== undefined) return exclusive("tiers", "`tiers` can only be set with `billing_scheme` `tiered`.")
    return tiers_mode === undefined
      ? Effect.void
      : exclusive("tiers_mode", "`tiers_mode` can only be set with `billing_scheme` `tiered`.")
  }
  const missing = tiers === undefined ? "tiers" : "tiers_mode"
  if (tiers === undefined || tiers_mode === undefined) {
    return invalid(missing, `\`${missing}\` is required with \`billing_scheme\` \`tiered\`.`, "parameter_missing")
  }
  if (transform_quantity !== undefined)
    return exclusive("transform_quantity", "`transform_quantity` cannot be combined with `tiers`.")
  return Effect.zipRight(checkTierBounds(tiers), checkTierAmounts(tiers))
}

const checkCustomAmount = (params: Pricing, name: (param: string) => string): Check => {
  const custom = params.custom_unit_amount
  if (custom === undefined) return Effect.void
  const { maximum = maximumAmount, minimum = 0, preset = minimum } = custom
  const refused = (message: string) => invalid(name("custom_unit_amount"), message)
  return firstOf(
    !custom.enabled && refused("`custom_unit_amount[enabled]` must be true."),
    params.recurring !== undefined && refused("`custom_unit_amount` cannot be combined with `recurring`."),
    params.transform_quantity !== undefined &&
      refused("`custom_unit_amount` cannot be combined with `transform_quantity`."),
    (minimum > maximum || preset < minimum || preset > maximum) &&
      refused("`custom_unit_amount` needs `minimum` <= `preset` <= `maximum`.")
  )
}

const checkSteps = (params: Pricing, name: (param: string) => string): Check => {
  const step = amountStep(params.currency)
  const { maximum, minimum, preset } = params.custom_unit_amount ?? {}
  const wrong = Object.entries({
    unit_amount: params.unit_amount,
    "custom_unit_amount[maximum]": maximum,
    "custom_unit_amount[minimum]": minimum,
    "custom_unit_amount[preset]": preset
  }).find(([, amount = 0]) => amount % step !== 0)
  return wrong === undefined
    ? Effect.void
    : invalid(name(wrong[0]), `Invalid amount: amounts in ${params.currency} have to be a multiple of ${step}.`)
}

const makeTier = (params: TierParams): PriceTier => {
  const unit = amountForms(params.unit_amount, params.unit_amount_decimal)
  const flat = amountForms(params.flat_amount, params.flat_amount_decimal)
  return {
    flat_amount: flat.integer,
    flat_amount_decimal: flat.decimal,
    unit_amount: unit.integer,
    unit_amount_decimal: unit.decimal,
    up_to: params.up_to === "inf" ? null : params.up_to
  }
}

const makeRecurring = (params: typeof recurring.Type): Price["recurring"] => ({
  interval: params.interval,
  interval_count: params.interval_count ?? 1,
  meter: null,
  trial_period_days: params.trial_period_days ?? null,
  usage_type: "licensed"
})

const makePrice = (product: string, created: number, params: Pricing): Price => {
  const unit = amountForms(params.unit_amount, params.unit_amount_decimal)
  const custom = params.custom_unit_amount
  return {
    id: newId("price_"),
    object: "price",
    active: params.active ?? true,
    billing_scheme: params.billing_scheme ?? "per_unit",
    created,
    currency: params.currency,
    custom_unit_amount: custom === undefined ? null : given(custom, "maximum minimum preset"),
    livemode: false,
    ...given(params, "lookup_key nickname tiers_mode transform_quantity"),
    metadata: Params.patchMetadata({}, params.metadata),
    product,
    recurring: params.recurring === undefined ? null : makeRecurring(params.recurring),
    tax_behavior: params.tax_behavior ?? "unspecified",
    ...(params.tiers === undefined ? {} : { tiers: params.tiers.map(makeTier) }),
    type: params.recurring === undefined ? "one_time" : "recurring",
    unit_amount: unit.integer,
    unit_amount_decimal: unit.decimal
  }
}

/** `within` is the parameter that contains these, such as `default_price_data`; the caller reports the event. */
export const createPrice = Effect.fnUntraced(function* (
  context: RequestContext,
  product: string,
  params: Pricing,
  within?: string
) {
  const name = (param: string) => (within === undefined ? param : `${within}[${param}]`)
  yield* checkOneAmount(params, name)
  yield* checkTiers(params)
  yield* checkCustomAmount(params, name)
  yield* checkSteps(params, name)
  const price = makePrice(product, context.now, params)
  context.objects.put("price", price.id, price)
  return price
})
