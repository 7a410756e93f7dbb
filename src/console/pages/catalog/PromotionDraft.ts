import { readCount, readPercentage } from "./Counts.ts"
import type { Problems, Written } from "./PriceDraft.ts"

/** A promotion code as edited in a form. */
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

/** A promotion code's fields in the API's form. */
export interface PromotionFields {
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

/** Converts a draft to the API's fields, or reports problems by the API's field names. The API checks bounds. */
export const readPromotion = (draft: PromotionDraft): Written<PromotionFields> => {
  const problems: Record<string, string> = {}
  const percent = readPercentage(draft.percent)
  const months = readCount(draft.months)
  const limit = readCount(draft.limit)
  const expires = momentOf(draft.expires)
  if (draft.kind === "percent" && typeof percent !== "number") {
    problems["discount.percent_off"] = "Write a percentage, such as 25 or 12.5."
  }
  if (draft.kind === "amount" && !Number.isInteger(draft.amount)) problems["discount.amount_off"] = "Write an amount."
  if (draft.duration === "repeating" && typeof months !== "number") {
    problems["duration_in_months"] = "Write a whole number of months."
  }
  if (limit === "unreadable") problems["max_redemptions"] = "Write a whole number, in digits."
  if (draft.expires !== "" && expires === undefined) problems["expires_at"] = "Write a day and a time."
  if (Object.keys(problems).length > 0) return { kind: "problems", problems: problems satisfies Problems }
  return {
    kind: "ready",
    value: {
      code: draft.code.trim(),
      discount:
        draft.kind === "percent"
          ? { percent_off: typeof percent === "number" ? percent : 0 }
          : { amount_off: draft.amount ?? 0, currency: draft.currency },
      duration: draft.duration,
      ...(draft.duration === "repeating" && typeof months === "number" ? { duration_in_months: months } : {}),
      ...(typeof limit === "number" ? { max_redemptions: limit } : {}),
      ...(expires === undefined ? {} : { expires_at: expires }),
      ...(draft.products.length === 0 ? {} : { products: draft.products })
    }
  }
}
