import { itemsAt, textAt } from "../../../api/Reading.ts"
import { changedFields, filled, noTexts } from "../../../components/forms/Reader.ts"

export const emptyProduct = { name: "", description: "", images: noTexts, unitLabel: "", url: "" }
export type ProductDraft = Readonly<typeof emptyProduct>

export const draftOf = (product: unknown): ProductDraft => ({
  name: textAt(product, "name") ?? "",
  description: textAt(product, "description") ?? "",
  images: itemsAt(product, "images").filter((url): url is string => typeof url === "string"),
  unitLabel: textAt(product, "unit_label") ?? "",
  url: textAt(product, "url") ?? ""
})

/** A product's fields in the API's form; "" and [] for empty ones. */
const fieldsOf = ({ description, images, name, unitLabel, url }: ProductDraft) => ({
  name: name.trim(),
  description: description.trim(),
  images,
  unit_label: unitLabel.trim(),
  url: url.trim()
})

export const newProduct = (draft: ProductDraft) => {
  const { name, ...others } = fieldsOf(draft)
  return { name, ...filled(others) }
}

/** The changed fields in the API's form. An emptied field is sent empty, which removes it. */
export const productChanges = (product: unknown, draft: ProductDraft) =>
  changedFields(fieldsOf(draftOf(product)), fieldsOf(draft))
