import { readCount, readPercentage } from "./Counts.ts"
import type { Problems, Written } from "./PriceDraft.ts"

/** A promotion code while it is written in a form. */
export interface PromotionDraft {
  readonly code: string
  readonly kind: "percent" | "amount"
  /** As it is typed. */
  readonly percent: string
  readonly amount: number | undefined
  readonly currency: string
  readonly duration: "once" | "repeating" | "forever"
  readonly months: string
  readonly limit: string
  /** A day and time of the reader's zone, as a browser's field gives it: `2026-11-23T18:00`. */
  readonly expires: string
  /** The ids of the products that it is for; none if it is for all. */
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

/** A promotion code's fields as the API takes them. */
export interface PromotionFields {
  readonly code: string
  readonly discount: { readonly percent_off: number } | { readonly amount_off: number; readonly currency: string }
  readonly duration: PromotionDraft["duration"]
  readonly duration_in_months?: number
  readonly max_redemptions?: number
  readonly expires_at?: number
  readonly products?: ReadonlyArray<string>
}

/** The Unix seconds of a local day and time; undefined if it is none. */
const momentOf = (local: string): number | undefined => {
  const millis = Date.parse(local)
  return Number.isNaN(millis) ? undefined : Math.floor(millis / 1000)
}

/** The API's fields of a written code, or what is wrong with it by the API's names; bounds are left to the API. */
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
