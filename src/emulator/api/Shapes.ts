import type { Kind, WordsOf } from "../Records.ts"
import type { Scoped } from "../store/Store.ts"

/** The objects in answers: those that are stored, and those that are only shown. */
export type Shape =
  | Kind
  | WordsOf<"application balance balance_settings bank_account deleted item line_item subscription_item">

export type Fields = Readonly<Record<string, Field>>

export type Field =
  /** Holds an id or a list of ids, or the objects if expanded. */
  | { readonly how: "reference"; readonly shape: Kind }
  /** Holds the id of an object of one of several kinds, whose own references cannot be expanded. */
  | { readonly how: "variant"; readonly shapes: ReadonlyArray<Kind> }
  /** Always holds the object. */
  | { readonly how: "embedded"; readonly shape: Shape }
  /** Always holds a list, of which the first items are shown. */
  | { readonly how: "items"; readonly shape: Shape }
  /** Stored with the object but shown only if expanded. */
  | { readonly how: "hidden" }
  /** A part of the object (or a list of parts) that has such fields itself. */
  | { readonly how: "part"; readonly fields: Fields }
  /** A list that is not a field of the stored object; shown only if expanded. */
  | {
      readonly how: "list"
      readonly shape: Shape
      readonly load: (objects: Scoped, id: string) => ReadonlyArray<object>
      readonly url: (id: string) => string
    }

const reference = (shape: Kind): Field => ({ how: "reference", shape })
const part = (fields: Fields): Field => ({ how: "part", fields })

const soldItems = (path: string): Field => ({
  how: "list",
  shape: "item",
  load: (objects, id) => objects.get("order", id)?.items ?? [],
  url: (id) => `/v1/${path}/${id}/line_items`
})

const expandable: { readonly [S in Shape]?: Fields } = {
  balance_transaction: { source: { how: "variant", shapes: ["charge", "refund", "payout", "dispute"] } },
  charge: {
    balance_transaction: reference("balance_transaction"),
    customer: reference("customer"),
    payment_intent: reference("payment_intent")
  },
  "checkout.session": {
    customer: reference("customer"),
    discounts: part({ promotion_code: reference("promotion_code") }),
    invoice: reference("invoice"),
    line_items: soldItems("checkout/sessions"),
    payment_intent: reference("payment_intent"),
    payment_link: reference("payment_link"),
    subscription: reference("subscription")
  },
  coupon: { applies_to: { how: "hidden" } },
  discount: { promotion_code: reference("promotion_code"), source: part({ coupon: reference("coupon") }) },
  dispute: { charge: reference("charge"), payment_intent: reference("payment_intent") },
  invoice: {
    customer: reference("customer"),
    discounts: reference("discount"),
    lines: { how: "items", shape: "line_item" },
    parent: part({ subscription_details: part({ subscription: reference("subscription") }) }),
    payments: { how: "hidden" }
  },
  item: { price: { how: "embedded", shape: "price" } },
  line_item: {
    discounts: reference("discount"),
    pricing: part({ price_details: part({ price: reference("price") }) }),
    subscription: reference("subscription")
  },
  payment_intent: { customer: reference("customer"), latest_charge: reference("charge") },
  payment_link: { line_items: soldItems("payment_links") },
  payout: { balance_transaction: reference("balance_transaction") },
  price: { product: reference("product"), tiers: { how: "hidden" } },
  product: { default_price: reference("price") },
  promotion_code: { customer: reference("customer"), promotion: part({ coupon: reference("coupon") }) },
  refund: {
    balance_transaction: reference("balance_transaction"),
    charge: reference("charge"),
    payment_intent: reference("payment_intent")
  },
  subscription: {
    customer: reference("customer"),
    discounts: reference("discount"),
    items: { how: "items", shape: "subscription_item" },
    latest_invoice: reference("invoice")
  },
  subscription_item: { price: { how: "embedded", shape: "price" } }
}

export const fieldsOf = (shape: Shape): Fields => expandable[shape] ?? {}
