import { Schema } from "effect"
import { described, optional } from "../../platform/kit/Request.ts"
import { type BrokenRule, UnitAmount } from "../Schemas.ts"

/** Maximum number of intervals in a billing period: the provider bills at most three years at once. */
const maximumIntervalCount = { day: 1_095, week: 156, month: 36, year: 3 } as const

const broken = (message: string, ...path: ReadonlyArray<PropertyKey>): BrokenRule => ({ path, message })

const recurringFields = {
  interval: described(
    Schema.Literal("day", "week", "month", "year").annotations({ identifier: "RecurringInterval" }),
    "The unit of the period"
  ),
  interval_count: optional(Schema.Int.pipe(Schema.between(1, 1_095)), "How many intervals a period has"),
  // Accepted, but not passed on: metered prices are not supported (contract 4.6)
  usage_type: optional(
    Schema.Literal("licensed", "metered").annotations({ identifier: "RecurringUsageType" }),
    "`licensed` for a fixed quantity, `metered` for what was used"
  )
}

const withinThreeYears = (recurring: {
  readonly interval: keyof typeof maximumIntervalCount
  readonly interval_count?: number
}) =>
  (recurring.interval_count ?? 1) <= maximumIntervalCount[recurring.interval]
    ? []
    : [
        broken(
          "must not make a period of more than three years: 1095 days, 156 weeks, 36 months or 3 years",
          "interval_count"
        )
      ]

/** Recurrence every `interval_count` intervals, at most three years. */
export const Recurring = Schema.Struct(recurringFields)
  .pipe(Schema.filter(withinThreeYears))
  .annotations({ identifier: "DefaultPriceDataRecurring" })

/** A recurrence that may begin with a trial of 1 to 730 days (two years). */
export const RecurringWithTrial = Schema.Struct({
  ...recurringFields,
  trial_period_days: optional(
    Schema.Int.pipe(Schema.between(1, 730)),
    "Days before the first charge, for subscriptions that checkout creates at this price"
  )
})
  .pipe(Schema.filter(withinThreeYears))
  .annotations({ identifier: "CreatePriceRecurring" })

/** Between `minimum` and `maximum`; the service adds the `enabled` that the provider requires. */
export const CustomUnitAmount = Schema.Struct({
  enabled: optional(Schema.Literal(true), "False is the same as leaving the object out"),
  minimum: optional(UnitAmount),
  maximum: optional(UnitAmount),
  preset: optional(UnitAmount)
})
  .pipe(
    Schema.filter(({ maximum = Number.POSITIVE_INFINITY, minimum = 0, preset }) => [
      ...(minimum > maximum ? [broken("must not be less than the minimum", "maximum")] : []),
      ...(preset !== undefined && (preset < minimum || preset > maximum)
        ? [broken("must be between the minimum and the maximum", "preset")]
        : [])
    ])
  )
  .annotations({ identifier: "CustomUnitAmount" })

const TierLimit = Schema.Union(Schema.Int.pipe(Schema.between(1, 999_999_999)), Schema.Literal("inf"))

const Tier = Schema.Struct({
  up_to: described(TierLimit, "The last unit of the tier; `inf` for the last tier, and only there"),
  unit_amount: optional(UnitAmount),
  flat_amount: optional(UnitAmount)
})
  .pipe(
    Schema.filter((tier) =>
      tier.unit_amount === undefined && tier.flat_amount === undefined
        ? [broken("is missing; each tier needs it or flat_amount", "unit_amount")]
        : []
    )
  )
  .annotations({ identifier: "CreatePriceTiersItem" })

/** 1 to 25 tiers with rising limits, the last of them `inf` (contract 4.6). */
export const Tiers = Schema.Array(Tier)
  .pipe(
    Schema.minItems(1),
    Schema.maxItems(25),
    Schema.filter((tiers) =>
      tiers.flatMap(({ up_to }, index) => {
        if (index === tiers.length - 1) {
          return up_to === "inf" ? [] : [broken("must be inf, since this is the last tier", index, "up_to")]
        }
        const next = tiers[index + 1]?.up_to
        return up_to !== "inf" && (next === undefined || next === "inf" || next > up_to)
          ? []
          : [broken("must be a number that rises from tier to tier; only the last tier has inf", index, "up_to")]
      })
    )
  )
  .annotations({ description: "The tiers of a price that has them" })

/** A price per package, such as a dozen: the quantity is divided before it is multiplied by the amount. */
export const TransformQuantity = Schema.Struct({
  divide_by: described(Schema.Int.pipe(Schema.between(1, 999_999)), "The quantity is divided by this"),
  round: described(
    Schema.Literal("up", "down").annotations({ identifier: "CreatePriceTransformQuantityRound" }),
    "Whether the result is rounded up or down"
  )
}).annotations({
  identifier: "CreatePriceTransformQuantity",
  description: "Divides the quantity before it is charged"
})

interface Amounts {
  readonly unit_amount?: number
  readonly custom_unit_amount?: object
  readonly recurring?: object
  readonly tiers?: ReadonlyArray<unknown>
  readonly tiers_mode?: string
  readonly transform_quantity?: object
}

/**
 * The rules for the fields that set a price's amount: exactly one of `unit_amount`, `custom_unit_amount` and `tiers`;
 * `tiers_mode` only with `tiers`; `transform_quantity` only with `unit_amount`; no recurrence if the payer chooses.
 */
export const amountRules = (price: Amounts): ReadonlyArray<BrokenRule> => {
  const given = (["unit_amount", "custom_unit_amount", "tiers"] as const).filter((field) => price[field] !== undefined)
  const rules: ReadonlyArray<readonly [isBroken: boolean, message: string, field: keyof Amounts]> = [
    [given.length === 0, "is missing; a price needs it, custom_unit_amount or tiers", "unit_amount"],
    ...given.map(
      (field) =>
        [
          given.length > 1,
          `is not accepted together with ${given.filter((other) => other !== field).join(" or ")}: send one of them`,
          field
        ] as const
    ),
    [
      price.tiers !== undefined && price.tiers_mode === undefined,
      "is missing; tiers need it: graduated or volume",
      "tiers_mode"
    ],
    [price.tiers === undefined && price.tiers_mode !== undefined, "is accepted only together with tiers", "tiers_mode"],
    [
      price.transform_quantity !== undefined && given.length > 0 && price.unit_amount === undefined,
      "is accepted only together with unit_amount",
      "transform_quantity"
    ],
    [
      price.custom_unit_amount !== undefined && price.recurring !== undefined,
      "is not accepted together with recurring: what the payer chooses does not recur",
      "custom_unit_amount"
    ]
  ]
  const fields = new Map(rules.flatMap(([isBroken, message, field]) => (isBroken ? [[field, message] as const] : [])))
  return [...fields].map(([field, message]) => broken(message, field))
}
