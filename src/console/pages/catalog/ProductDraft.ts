import { itemsAt, textAt } from "../payments/Reading.ts"

/** A product as edited in a form. */
export interface ProductDraft {
  readonly name: string
  readonly description: string
  readonly images: ReadonlyArray<string>
  readonly unitLabel: string
  readonly url: string
}

export const emptyProduct: ProductDraft = { name: "", description: "", images: [], unitLabel: "", url: "" }

/** A provider's product as form values. */
export const draftOf = (product: unknown): ProductDraft => ({
  name: textAt(product, "name") ?? "",
  description: textAt(product, "description") ?? "",
  images: itemsAt(product, "images").filter((url): url is string => typeof url === "string"),
  unitLabel: textAt(product, "unit_label") ?? "",
  url: textAt(product, "url") ?? ""
})

/** A new product's fields in the API's form; omits empty ones except the required name. */
export const newProduct = (draft: ProductDraft) => ({
  name: draft.name.trim(),
  ...(draft.description.trim() === "" ? {} : { description: draft.description.trim() }),
  ...(draft.images.length === 0 ? {} : { images: draft.images }),
  ...(draft.unitLabel.trim() === "" ? {} : { unit_label: draft.unitLabel.trim() }),
  ...(draft.url.trim() === "" ? {} : { url: draft.url.trim() })
})

/** The changed fields in the API's form. An emptied field is sent empty, which removes it. */
export const productChanges = (product: unknown, draft: ProductDraft) => {
  const before = draftOf(product)
  const differs = (written: string, was: string) => written.trim() !== was
  return {
    ...(differs(draft.name, before.name) ? { name: draft.name.trim() } : {}),
    ...(differs(draft.description, before.description) ? { description: draft.description.trim() } : {}),
    ...(draft.images.join("\n") === before.images.join("\n") ? {} : { images: draft.images }),
    ...(differs(draft.unitLabel, before.unitLabel) ? { unit_label: draft.unitLabel.trim() } : {}),
    ...(differs(draft.url, before.url) ? { url: draft.url.trim() } : {})
  }
}
