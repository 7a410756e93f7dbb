import { isPlain, type Plain, present, unexpanded } from "../api/Presentation.ts"
import type { Event } from "../Records.ts"
import type { Scoped } from "../store/Store.ts"
import { olderApiVersion } from "../Versions.ts"

const plain = (value: unknown): Plain => (isPlain(value) ? value : {})

const without = (object: Plain, ...names: ReadonlyArray<string>): Plain =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))

const eachOf = (list: unknown, change: (item: Plain) => Plain): unknown =>
  isPlain(list) && Array.isArray(list["data"])
    ? { ...list, data: list["data"].map((item: unknown) => change(plain(item))) }
    : list

/** The price itself; in the current version a line has only its id. */
const priceOf = (objects: Scoped, id: unknown): Plain | null => {
  const price = typeof id === "string" ? objects.get("price", id) : undefined
  return price === undefined ? null : present(objects, "price", price, unexpanded)
}

const olderLine =
  (objects: Scoped) =>
  (line: Plain): Plain => {
    const parent = plain(line["parent"])
    const details = plain(parent["subscription_item_details"] ?? parent["invoice_item_details"])
    const isRecurring = parent["type"] === "subscription_item_details"
    return {
      ...without(line, "parent", "pricing", "quantity_decimal", "subtotal", "taxes"),
      amount_excluding_tax: line["amount"],
      ...(isRecurring
        ? { subscription_item: details["subscription_item"] }
        : { invoice_item: details["invoice_item"] }),
      price: priceOf(objects, plain(plain(line["pricing"])["price_details"])["price"]),
      proration: details["proration"] ?? false,
      proration_details: details["proration_details"] ?? { credited_items: null },
      tax_amounts: [],
      tax_rates: [],
      type: isRecurring ? "subscription" : "invoiceitem"
    }
  }

const paymentOf = (objects: Scoped, invoice: unknown) => {
  const payments = typeof invoice === "string" ? objects.get("invoice", invoice)?.payments.data : undefined
  const intent = payments?.[0]?.payment.payment_intent
  return typeof intent === "string"
    ? { charge: objects.get("payment_intent", intent)?.latest_charge ?? null, payment_intent: intent }
    : { charge: null, payment_intent: null }
}

const olderInvoice = (objects: Scoped, invoice: Plain): Plain => {
  const details = plain(plain(invoice["parent"])["subscription_details"])
  return {
    ...without(invoice, "parent", "total_taxes"),
    ...paymentOf(objects, invoice["id"]),
    discount: null,
    lines: eachOf(invoice["lines"], olderLine(objects)),
    paid: invoice["status"] === "paid",
    subscription: details["subscription"] ?? null,
    subscription_details: { metadata: details["metadata"] ?? null },
    tax: null,
    total_tax_amounts: []
  }
}

const firstItem = (subscription: Plain): Plain => {
  const items = plain(subscription["items"])["data"]
  return plain(Array.isArray(items) ? items[0] : undefined)
}

const periodFields = ["current_period_end", "current_period_start"] as const

const olderSubscription = (subscription: Plain): Plain => {
  if (!("items" in subscription)) return subscription
  const first = firstItem(subscription)
  return {
    ...without(subscription, "billing_mode", "billing_schedules"),
    ...Object.fromEntries(periodFields.map((name) => [name, first[name]])),
    items: eachOf(subscription["items"], (item) => without(item, ...periodFields))
  }
}

const invoiceOf = (objects: Scoped, intent: unknown): string | null =>
  objects.all("invoice").find(({ payments }) => payments.data.some(({ payment }) => payment.payment_intent === intent))
    ?.id ?? null

const olderPromotionCode = (objects: Scoped, code: Plain): Plain => {
  const id = plain(code["promotion"])["coupon"]
  const coupon = typeof id === "string" ? objects.get("coupon", id) : undefined
  return {
    ...without(code, "promotion"),
    coupon: coupon === undefined ? null : present(objects, "coupon", coupon, unexpanded)
  }
}

const older = (objects: Scoped, object: Plain): Plain => {
  switch (object["object"]) {
    case "charge":
      return { ...object, invoice: invoiceOf(objects, object["payment_intent"]) }
    case "invoice":
      return olderInvoice(objects, object)
    case "payment_intent":
      return { ...object, invoice: invoiceOf(objects, object["id"]) }
    case "promotion_code":
      return olderPromotionCode(objects, object)
    case "subscription":
      return olderSubscription(object)
    default:
      return object
  }
}

/**
 * Converts an event to the version before 2025: an invoice names its subscription and its payment itself and its lines
 * hold their prices, the subscription itself has the period, a payment names its invoice, and the event has no
 * `context`. Fields added since then are kept.
 */
export const inOlderVersion = (objects: Scoped, { context: _, ...event }: Event): Event => {
  const previous = event.data.previous_attributes
  const object = plain(event.data.object)
  return {
    ...event,
    api_version: olderApiVersion,
    data: {
      object: older(objects, object),
      ...(previous === undefined
        ? {}
        : { previous_attributes: object["object"] === "subscription" ? olderSubscription(previous) : previous })
    }
  }
}
