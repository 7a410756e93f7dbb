import { readCount } from "./Counts.ts"
import type { Written } from "./PriceDraft.ts"

/** The items of a payment link or a checkout page, as edited in a form. */

export interface ItemDraft {
  /** The list key, stable while other items are added or removed. */
  readonly key: number
  /** The price's id; `""` if none is chosen. */
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

/** A parsed item; `bounds` is set if the payer chooses the quantity. */
export interface WrittenItem {
  readonly price: string
  readonly quantity: number
  readonly bounds: { readonly minimum: number; readonly maximum: number } | undefined
}

const notANumber = "Write a whole number, in digits."

/** Parses the items, or reports problems by field name: `<prefix>.<index>.quantity`. The API checks bounds. */
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
