import { readCount } from "./Counts.ts"
import type { Written } from "./PriceDraft.ts"

/** What a payment link or a checkout page sells, while it is written in a form. */

export interface ItemDraft {
  /** For lists: the same item keeps it while others come and go. */
  readonly key: number
  /** The price's id; `""` while none is chosen. */
  readonly price: string
  readonly quantity: string
  readonly isAdjustable: boolean
  readonly minimum: string
  readonly maximum: string
}

export const emptyItem = (key: number): ItemDraft => ({
  key,
  price: "",
  quantity: "1",
  isAdjustable: false,
  minimum: "1",
  maximum: "10"
})

/** An item that was read; the bounds are there if the payer chooses the quantity. */
export interface WrittenItem {
  readonly price: string
  readonly quantity: number
  readonly bounds: { readonly minimum: number; readonly maximum: number } | undefined
}

const notANumber = "Write a whole number, in digits."

/**
 * The written items, or what is wrong with them by the name of the field: `<prefix>.<index>.quantity`. Bounds are left to
 * the API.
 */
export const readItems = (
  items: ReadonlyArray<ItemDraft>,
  names: { readonly prefix: string; readonly adjustable: string }
): Written<ReadonlyArray<WrittenItem>> => {
  const problems: Record<string, string> = {}
  const count = (name: string, text: string): number => {
    const written = readCount(text)
    if (typeof written === "number") return written
    problems[name] = notANumber
    return 0
  }
  const value = items.map((item, index): WrittenItem => {
    const path = `${names.prefix}.${index}`
    if (item.price === "") problems[`${path}.price`] = "Choose what is sold."
    return {
      price: item.price,
      quantity: count(`${path}.quantity`, item.quantity),
      bounds: item.isAdjustable
        ? {
            minimum: count(`${path}.${names.adjustable}.minimum`, item.minimum),
            maximum: count(`${path}.${names.adjustable}.maximum`, item.maximum)
          }
        : undefined
    }
  })
  return Object.keys(problems).length === 0 ? { kind: "ready", value } : { kind: "problems", problems }
}
