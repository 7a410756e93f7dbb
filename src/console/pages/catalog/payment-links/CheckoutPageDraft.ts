import type { AnswerOf } from "../../../api/Types.ts"
import { changedFields, filled, noTexts, Reader } from "../../../components/forms/Reader.ts"
import { emptyItem, firstItem, itemsIn } from "./ItemDraft.ts"
import { draftOfQuestion, noQuestions, questionsIn } from "./QuestionDraft.ts"

/** A checkout page as edited in a form. Pure. */

export type CheckoutPage = AnswerOf<"checkoutPages", "get">

export const itemNames = { prefix: "items", adjustable: "adjustableQuantity" }

export const emptyCheckoutPage = {
  title: "",
  text: "",
  /** At most one. */
  images: noTexts,
  imageAlt: "",
  items: firstItem,
  asksAddress: false,
  asksPhone: false,
  questions: noQuestions,
  allowsCodes: false,
  thanks: ""
}
export type CheckoutPageDraft = Readonly<typeof emptyCheckoutPage>

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
const fieldsIn = (reader: Reader, draft: CheckoutPageDraft) => {
  const [imageUrl = ""] = draft.images
  return {
    title: draft.title.trim(),
    text: draft.text.trim(),
    imageUrl,
    imageAlt: imageUrl === "" ? "" : draft.imageAlt.trim(),
    items: itemsIn(reader, draft.items, itemNames).map(({ bounds, price, quantity }) => ({
      price,
      quantity,
      ...filled({ adjustableQuantity: bounds })
    })),
    collect: {
      billingAddress: draft.asksAddress,
      phoneNumber: draft.asksPhone,
      customFields: questionsIn(reader, draft.questions)
    },
    allowPromotionCodes: draft.allowsCodes,
    successText: draft.thanks.trim()
  }
}

export const newPage = (draft: CheckoutPageDraft) => {
  const reader = new Reader()
  const { imageAlt, imageUrl, successText, text, ...others } = fieldsIn(reader, draft)
  const image = imageUrl === "" ? {} : { imageUrl, imageAlt }
  return reader.done({ ...others, ...filled({ text, successText }), ...image })
}

export const pageChanges = (page: CheckoutPage, draft: CheckoutPageDraft) => {
  const reader = new Reader()
  return reader.done(changedFields(fieldsIn(new Reader(), draftOfPage(page)), fieldsIn(reader, draft)))
}
