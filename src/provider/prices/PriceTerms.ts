import { Schema } from "effect"
import { optional } from "../../kit/Request.ts"
import { UnitAmount } from "../Schemas.ts"

/** What a price costs and how it recurs: the fields and rules that every place shares in which a price is described. */

/** The longest period that the provider bills in one go is three years. */
const maximumIntervalCount = { day: 1_095, week: 156, month: 36, year: 3 } as const

/** A rule over several fields: what is wrong, by the field's path. */
export interface RuleBroken {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

const broken = (message: string, ...path: ReadonlyArray<PropertyKey>): RuleBroken => ({ path, message })

const recurringFields = {
  interval: Schema.Literal("day", "week", "month", "year"),
  interval_count: optional(Schema.Int.pipe(Schema.between(1, 1_095))),
  // Accepted and dropped before the provider: metered prices are not supported (contract 4.6)
  usage_type: optional(Schema.Literal("licensed", "metered"))
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
export const Recurring = Schema.Struct(recurringFields).pipe(Schema.filter(withinThreeYears))

/** A recurrence that may begin with a trial of 1 to 730 days (two years). */
export const RecurringWithTrial = Schema.Struct({
  ...recurringFields,
  trial_period_days: optional(
    Schema.Int.pipe(Schema.between(1, 730)).annotations({
      description: "Days before the first charge, for subscriptions that checkout makes of this price"
    })
  )
}).pipe(Schema.filter(withinThreeYears))

/**
 * The payer chooses the amount, within `minimum` and `maximum`, beginning at `preset`. `enabled` is the provider's own way
 * to say that there is such a choice; saying it again changes nothing.
 */
export const CustomUnitAmount = Schema.Struct({
  enabled: optional(Schema.Literal(true)),
  minimum: optional(UnitAmount),
  maximum: optional(UnitAmount),
  preset: optional(UnitAmount)
}).pipe(
  Schema.filter(({ maximum = Number.POSITIVE_INFINITY, minimum = 0, preset }) => [
    ...(minimum > maximum ? [broken("must not be less than the minimum", "maximum")] : []),
    ...(preset !== undefined && (preset < minimum || preset > maximum)
      ? [broken("must be between the minimum and the maximum", "preset")]
      : [])
  ])
)

const TierLimit = Schema.Union(Schema.Int.pipe(Schema.between(1, 999_999_999)), Schema.Literal("inf"))

const Tier = Schema.Struct({
  up_to: TierLimit.annotations({ description: "The last unit of the tier; `inf` for the last tier, and only there" }),
  unit_amount: optional(UnitAmount),
  flat_amount: optional(UnitAmount)
}).pipe(
  Schema.filter((tier) =>
    tier.unit_amount === undefined && tier.flat_amount === undefined
      ? [broken("is missing; each tier needs it or flat_amount", "unit_amount")]
      : []
  )
)

/** 1 to 25 tiers with rising limits, the last of them `inf` (contract 4.6). */
export const Tiers = Schema.Array(Tier).pipe(
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

/** The quantity is divided before it is multiplied by the amount: a price per dozen. */
export const TransformQuantity = Schema.Struct({
  divide_by: Schema.Int.pipe(Schema.between(1, 999_999)),
  round: Schema.Literal("up", "down")
})

/** What of a price's description the rules below look at. */
interface Described {
  readonly unit_amount?: number
  readonly custom_unit_amount?: object
  readonly recurring?: object
  readonly tiers?: ReadonlyArray<unknown>
  readonly tiers_mode?: string
  readonly transform_quantity?: object
}

/**
 * How the fields that say what a price costs fit together: one of `unit_amount`, `custom_unit_amount` and `tiers`;
 * `tiers_mode` with tiers alone; `transform_quantity` with `unit_amount` alone; no recurrence of what the payer chooses.
 */
export const amountRules = (price: Described): ReadonlyArray<RuleBroken> => {
  const given = (["unit_amount", "custom_unit_amount", "tiers"] as const).filter((field) => price[field] !== undefined)
  const rules: ReadonlyArray<readonly [isBroken: boolean, message: string, field: keyof Described]> = [
    [given.length === 0, "is missing; a price needs it, custom_unit_amount or tiers", "unit_amount"],
    ...given.map(
      (field) =>
        [
          given.length > 1,
          `is not taken together with ${given.filter((other) => other !== field).join(" or ")}: send one of them`,
          field
        ] as const
    ),
    [
      price.tiers !== undefined && price.tiers_mode === undefined,
      "is missing; tiers need it: graduated or volume",
      "tiers_mode"
    ],
    [price.tiers === undefined && price.tiers_mode !== undefined, "is taken together with tiers alone", "tiers_mode"],
    [
      price.transform_quantity !== undefined && given.length > 0 && price.unit_amount === undefined,
      "is taken together with unit_amount alone",
      "transform_quantity"
    ],
    [
      price.custom_unit_amount !== undefined && price.recurring !== undefined,
      "is not taken together with recurring: what the payer chooses does not recur",
      "custom_unit_amount"
    ]
  ]
  const fields = new Map(rules.flatMap(([isBroken, message, field]) => (isBroken ? [[field, message] as const] : [])))
  return [...fields].map(([field, message]) => broken(message, field))
}
