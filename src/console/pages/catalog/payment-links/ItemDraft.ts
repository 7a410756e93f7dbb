import type { Reader } from "../../../components/forms/Reader.ts"

export const emptyItem = (key: number) => ({
  /** The list key, stable while other items are added or removed. */
  key,
  /** The price's id; `""` if none is chosen. */
  price: "",
  quantity: "1",
  isAdjustable: false,
  minimum: "1",
  maximum: "10"
})
export type ItemDraft = Readonly<ReturnType<typeof emptyItem>>

export const firstItem: ReadonlyArray<ItemDraft> = [emptyItem(0)]

interface WrittenItem {
  readonly price: string
  readonly quantity: number
  readonly bounds: { readonly minimum: number; readonly maximum: number } | undefined
}

/** Reads the items; their problems' names are like `<prefix>.<index>.quantity`. */
export const itemsIn = (
  reader: Reader,
  items: ReadonlyArray<ItemDraft>,
  { adjustable, prefix }: { readonly prefix: string; readonly adjustable: string }
): ReadonlyArray<WrittenItem> =>
  items.map((item, index) => {
    const path = `${prefix}.${index}`
    if (item.price === "") reader.problems[`${path}.price`] = "Choose what is sold."
    const quantity = reader.neededCount(`${path}.quantity`, item.quantity)
    if (!item.isAdjustable) return { price: item.price, quantity, bounds: undefined }
    const minimum = reader.neededCount(`${path}.${adjustable}.minimum`, item.minimum)
    const maximum = reader.neededCount(`${path}.${adjustable}.maximum`, item.maximum)
    return { price: item.price, quantity, bounds: { minimum, maximum } }
  })
