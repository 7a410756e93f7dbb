import type { AnswerOf } from "../../api/Types.ts"
import { emptyItem, type ItemDraft, readItems } from "./ItemDraft.ts"
import type { Written } from "./PriceDraft.ts"
import { draftOfQuestion, type QuestionDraft, readQuestions } from "./QuestionDraft.ts"

/** A checkout page as edited in a form. Pure. */

export type CheckoutPage = AnswerOf<"checkoutPages", "get">

export interface CheckoutPageDraft {
  readonly title: string
  readonly text: string
  /** At most one. */
  readonly images: ReadonlyArray<string>
  readonly imageAlt: string
  readonly items: ReadonlyArray<ItemDraft>
  readonly asksAddress: boolean
  readonly asksPhone: boolean
  readonly questions: ReadonlyArray<QuestionDraft>
  readonly allowsCodes: boolean
  readonly thanks: string
}

/** The API's field names for an item. */
export const itemNames = { prefix: "items", adjustable: "adjustableQuantity" }

export const emptyCheckoutPage: CheckoutPageDraft = {
  title: "",
  text: "",
  images: [],
  imageAlt: "",
  items: [emptyItem(0)],
  asksAddress: false,
  asksPhone: false,
  questions: [],
  allowsCodes: false,
  thanks: ""
}

/** A page as form values. */
export const draftOfPage = (page: CheckoutPage): CheckoutPageDraft => ({
  title: page.title,
  text: page.text ?? "",
  images: page.imageUrl === null ? [] : [page.imageUrl],
  imageAlt: page.imageAlt,
  items: page.items.map(({ adjustableQuantity, price, quantity }, key) => ({
    ...emptyItem(key),
    price,
    quantity: String(quantity),
    ...(adjustableQuantity === null
      ? {}
      : {
          isAdjustable: true,
          minimum: String(adjustableQuantity.minimum),
          maximum: String(adjustableQuantity.maximum)
        })
  })),
  asksAddress: page.collect.billingAddress,
  asksPhone: page.collect.phoneNumber,
  questions: page.collect.customFields.map(draftOfQuestion),
  allowsCodes: page.allowPromotionCodes,
  thanks: page.successText ?? ""
})

/** Every field in the API's form; "" for empty ones. */
const fieldsOf = (draft: CheckoutPageDraft) => {
  const sold = readItems(draft.items, itemNames)
  const asked = readQuestions(draft.questions)
  if (sold.kind === "problems" || asked.kind === "problems") {
    return {
      kind: "problems",
      problems: {
        ...(sold.kind === "problems" ? sold.problems : {}),
        ...(asked.kind === "problems" ? asked.problems : {})
      }
    } as const
  }
  const [imageUrl = ""] = draft.images
  const value = {
    title: draft.title.trim(),
    text: draft.text.trim(),
    imageUrl,
    imageAlt: imageUrl === "" ? "" : draft.imageAlt.trim(),
    items: sold.value.map(({ bounds, price, quantity }) => ({
      price,
      quantity,
      ...(bounds === undefined ? {} : { adjustableQuantity: bounds })
    })),
    collect: { billingAddress: draft.asksAddress, phoneNumber: draft.asksPhone, customFields: asked.value },
    allowPromotionCodes: draft.allowsCodes,
    successText: draft.thanks.trim()
  }
  return { kind: "ready", value } as const
}

type Fields = Extract<ReturnType<typeof fieldsOf>, { readonly kind: "ready" }>["value"]

/** The fields of a new page; omits empty ones except the required title. */
export const newPage = (draft: CheckoutPageDraft): Written<Pick<Fields, "title" | "items"> & Partial<Fields>> => {
  const read = fieldsOf(draft)
  if (read.kind === "problems") return read
  const { imageAlt, imageUrl, successText, text, ...others } = read.value
  const value = {
    ...others,
    ...(text === "" ? {} : { text }),
    ...(imageUrl === "" ? {} : { imageUrl, imageAlt }),
    ...(successText === "" ? {} : { successText })
  }
  return { kind: "ready", value }
}

/** The changed fields of a page. Only these are sent, so that someone else's concurrent change is kept. */
export const pageChanges = (page: CheckoutPage, draft: CheckoutPageDraft): Written<Partial<Fields>> => {
  const [read, before] = [fieldsOf(draft), fieldsOf(draftOfPage(page))]
  if (read.kind === "problems") return read
  if (before.kind === "problems") return { kind: "ready", value: read.value }
  const isSame = (name: keyof Fields) => JSON.stringify(read.value[name]) === JSON.stringify(before.value[name])
  const { allowPromotionCodes, collect, imageAlt, imageUrl, items, successText, text, title } = read.value
  const value = {
    ...(isSame("title") ? {} : { title }),
    ...(isSame("text") ? {} : { text }),
    ...(isSame("imageUrl") ? {} : { imageUrl }),
    ...(isSame("imageAlt") ? {} : { imageAlt }),
    ...(isSame("items") ? {} : { items }),
    ...(isSame("collect") ? {} : { collect }),
    ...(isSame("allowPromotionCodes") ? {} : { allowPromotionCodes }),
    ...(isSame("successText") ? {} : { successText })
  }
  return { kind: "ready", value }
}
