import type { RequestOf } from "../../../api/Types.ts"
import { filled, noAmount, Reader, type Written } from "../../../components/forms/Reader.ts"

export const intervals = ["day", "week", "month", "year"] as const
type Interval = (typeof intervals)[number]

export interface TierDraft {
  /** The list key, stable while other tiers are added or removed. */
  readonly key: number
  /** The tier's last unit, as typed; unused in the last tier. */
  readonly upTo: string
  readonly unitAmount: number | undefined
  readonly flatAmount: number | undefined
}

export type Scheme = "fixed" | "package" | "tiers" | "chosen"

/** Undefined if the field is empty, NaN if its text is not an amount. */
const noAmountYet = undefined as number | undefined

const firstTiers: ReadonlyArray<TierDraft> = [
  { key: 0, upTo: "10", unitAmount: undefined, flatAmount: undefined },
  { key: 1, upTo: "", unitAmount: undefined, flatAmount: undefined }
]

export const emptyPrice = (currency: string) => ({
  currency,
  isRecurring: false,
  interval: "month" as Interval,
  intervalCount: "1",
  trialDays: "",
  scheme: "fixed" as Scheme,
  amount: noAmountYet,
  packageSize: "12",
  rounding: "up" as "up" | "down",
  tiersMode: "graduated" as "graduated" | "volume",
  tiers: firstTiers,
  minimum: noAmountYet,
  maximum: noAmountYet,
  preset: noAmountYet,
  nickname: "",
  lookupKey: "",
  transfersKey: false
})
export type PriceDraft = Readonly<ReturnType<typeof emptyPrice>>

export type PriceFields = Omit<RequestOf<"prices", "create">["payload"], "product" | "product_data">

type AmountFields = Omit<PriceFields, "currency">

const tiersIn = (reader: Reader, { tiers }: PriceDraft): NonNullable<AmountFields["tiers"]> =>
  tiers.map(({ flatAmount, unitAmount, upTo }, index) => {
    const isLast = index === tiers.length - 1
    const unit = reader.amount(`tiers.${index}.unit_amount`, unitAmount)
    const flat = reader.amount(`tiers.${index}.flat_amount`, flatAmount)
    if (unit === undefined && flat === undefined) reader.problems[`tiers.${index}.unit_amount`] = noAmount
    return {
      up_to: isLast ? "inf" : reader.neededCount(`tiers.${index}.up_to`, upTo),
      ...filled({ unit_amount: unit, flat_amount: flat })
    }
  })

const amountIn = (reader: Reader, draft: PriceDraft): AmountFields => {
  switch (draft.scheme) {
    case "fixed":
      return { unit_amount: reader.neededAmount("unit_amount", draft.amount) }
    case "package":
      return {
        unit_amount: reader.neededAmount("unit_amount", draft.amount),
        transform_quantity: {
          divide_by: reader.neededCount("transform_quantity.divide_by", draft.packageSize),
          round: draft.rounding
        }
      }
    case "tiers":
      return { tiers: tiersIn(reader, draft), tiers_mode: draft.tiersMode }
    case "chosen": {
      const amounts = { minimum: draft.minimum, maximum: draft.maximum, preset: draft.preset }
      for (const [name, amount] of Object.entries(amounts)) reader.amount(`custom_unit_amount.${name}`, amount)
      return { custom_unit_amount: filled(amounts) }
    }
  }
}

export const readPrice = (draft: PriceDraft): Written<PriceFields> => {
  const reader = new Reader()
  const recurs = draft.isRecurring && draft.scheme !== "chosen"
  const trial = recurs ? reader.count("recurring.trial_period_days", draft.trialDays) : undefined
  const key = draft.lookupKey.trim()
  return reader.done({
    currency: draft.currency,
    ...amountIn(reader, draft),
    ...(recurs
      ? {
          recurring: {
            interval: draft.interval,
            interval_count: reader.neededCount("recurring.interval_count", draft.intervalCount),
            ...(trial === undefined || trial === 0 ? {} : { trial_period_days: trial })
          }
        }
      : {}),
    ...filled({ nickname: draft.nickname.trim() }),
    ...(key === "" ? {} : { lookup_key: key, ...(draft.transfersKey ? { transfer_lookup_key: true } : {}) })
  })
}
