import { filled, noAmount, Reader, readPercentage, type Written } from "../../components/Reader.ts"

export interface PromotionDraft {
  readonly code: string
  readonly kind: "percent" | "amount"
  /** As typed. */
  readonly percent: string
  readonly amount: number | undefined
  readonly currency: string
  readonly duration: "once" | "repeating" | "forever"
  readonly months: string
  readonly limit: string
  /** A local date and time, as in an `<input type="datetime-local">`: `2026-11-23T18:00`. */
  readonly expires: string
  /** The ids of the products that it is limited to; empty for all. */
  readonly products: ReadonlyArray<string>
}

export const emptyPromotion = (currency: string): PromotionDraft => ({
  code: "",
  kind: "percent",
  percent: "",
  amount: undefined,
  currency,
  duration: "once",
  months: "3",
  limit: "",
  expires: "",
  products: []
})

interface PromotionFields {
  readonly code: string
  readonly discount: { readonly percent_off: number } | { readonly amount_off: number; readonly currency: string }
  readonly duration: PromotionDraft["duration"]
  readonly duration_in_months?: number
  readonly max_redemptions?: number
  readonly expires_at?: number
  readonly products?: ReadonlyArray<string>
}

/** Converts a local date and time to Unix seconds; undefined if invalid. */
const momentOf = (local: string): number | undefined => {
  const millis = Date.parse(local)
  return Number.isNaN(millis) ? undefined : Math.floor(millis / 1000)
}

export const readPromotion = (draft: PromotionDraft): Written<PromotionFields> => {
  const reader = new Reader()
  const percent = readPercentage(draft.percent)
  const expires = momentOf(draft.expires)
  if (draft.kind === "percent" && typeof percent !== "number") {
    reader.problems["discount.percent_off"] = "Write a percentage, such as 25 or 12.5."
  }
  if (draft.kind === "amount" && !Number.isInteger(draft.amount)) reader.problems["discount.amount_off"] = noAmount
  if (draft.expires !== "" && expires === undefined) reader.problems["expires_at"] = "Write a day and a time."
  return reader.done({
    code: draft.code.trim(),
    discount:
      draft.kind === "percent"
        ? { percent_off: typeof percent === "number" ? percent : 0 }
        : { amount_off: draft.amount ?? 0, currency: draft.currency },
    duration: draft.duration,
    ...(draft.duration === "repeating"
      ? {
          duration_in_months: reader.neededCount("duration_in_months", draft.months, "Write a whole number of months.")
        }
      : {}),
    ...filled({
      max_redemptions: reader.count("max_redemptions", draft.limit),
      expires_at: expires,
      products: draft.products
    })
  })
}
