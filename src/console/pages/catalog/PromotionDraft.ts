import { filled, noAmount, Reader, readPercentage } from "../../components/Reader.ts"
import { noTexts } from "./ProductDraft.ts"

export const emptyPromotion = (currency: string) => ({
  code: "",
  kind: "percent" as "percent" | "amount",
  percent: "",
  amount: undefined as number | undefined,
  currency,
  duration: "once" as "once" | "repeating" | "forever",
  months: "3",
  limit: "",
  /** A local date and time, as in an `<input type="datetime-local">`: `2026-11-23T18:00`. */
  expires: "",
  /** The ids of the products that it is limited to; empty for all. */
  products: noTexts
})
export type PromotionDraft = Readonly<ReturnType<typeof emptyPromotion>>

/** Converts a local date and time to Unix seconds; undefined if invalid. */
const momentOf = (local: string): number | undefined => {
  const millis = Date.parse(local)
  return Number.isNaN(millis) ? undefined : Math.floor(millis / 1000)
}

export const readPromotion = (draft: PromotionDraft) => {
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
