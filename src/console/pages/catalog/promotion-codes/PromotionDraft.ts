import { itemsAt, numberAt, textAt } from "../../../api/Reading.ts"
import { formatAmount } from "../../../components/amounts.ts"
import { filled, noAmount, noTexts, Reader, readPercentage } from "../../../components/forms/Reader.ts"

const percent = new Intl.NumberFormat("en", { maximumFractionDigits: 2 })

/** A coupon's discount: `25% off`, `R$10.00 off`. */
export const discountWords = (coupon: unknown): string => {
  const off = numberAt(coupon, "percent_off")
  if (off !== undefined) return `${percent.format(off)}% off`
  const amount = numberAt(coupon, "amount_off")
  return amount === undefined ? "No discount" : `${formatAmount(amount, textAt(coupon, "currency") ?? "")} off`
}

/** The payments that a coupon applies to: `the first payment`, `every payment`, `the payments of 3 months`. */
export const durationWords = (coupon: unknown): string => {
  switch (textAt(coupon, "duration")) {
    case "forever":
      return "every payment"
    case "repeating": {
      const months = numberAt(coupon, "duration_in_months") ?? 0
      return months === 1 ? "the payments of 1 month" : `the payments of ${months} months`
    }
    default:
      return "the first payment"
  }
}

/** The ids of the products that a code is limited to; empty if it applies to all. */
export const productsOf = (coupon: unknown): ReadonlyArray<string> =>
  itemsAt(coupon, "applies_to", "products").filter((id): id is string => typeof id === "string")

const count = new Intl.NumberFormat("en")

/** The number of a code's redemptions: `3 of 100`, `3`. */
export const redemptionWords = (code: unknown): string => {
  const used = count.format(numberAt(code, "times_redeemed") ?? 0)
  const most = numberAt(code, "max_redemptions")
  return most === undefined ? used : `${used} of ${count.format(most)}`
}

/** Why a code is not usable; undefined if it is. `now` is in Unix seconds. */
export const unusableBecause = (code: unknown, now: number): "expired" | "used up" | "off" | undefined => {
  const expires = numberAt(code, "expires_at")
  if (expires !== undefined && expires <= now) return "expired"
  const most = numberAt(code, "max_redemptions")
  if (most !== undefined && (numberAt(code, "times_redeemed") ?? 0) >= most) return "used up"
  return code !== null && typeof code === "object" && "active" in code && code.active === true ? undefined : "off"
}

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
