import { Predicate } from "effect"
import { canary } from "./ProviderObjects.ts"
import type { Json } from "./ProviderSchemas.ts"

/*
 * The provider's objects as they were before 2025: what the types of its package no longer say, and what notification
 * endpoints that still have that version send.
 */

export const record = (value: unknown): Json => (Predicate.isRecord(value) ? value : {})
const listOf = (value: unknown): ReadonlyArray<Json> => {
  const { data } = record(value)
  return Array.isArray(data) ? data.map(record) : []
}

export const idOf = (value: unknown): unknown => (Predicate.isRecord(value) ? value["id"] : (value ?? null))

/** A line of an invoice as it was before 2025: with the price itself. */
const olderLine = ({ pricing, parent, ...line }: Json): Json => {
  const { price, product } = record(record(pricing)["price_details"])
  return { ...line, price: price === undefined ? null : { id: idOf(price), object: "price", product: product ?? null } }
}

/** An object in the form that it had before 2025, for notification endpoints that still have that version. */
export const inOlderForm = (name: string, object: Json): Json => {
  if (name === "payment_intent") {
    return { ...object, charges: { object: "list", data: [{ id: `ch_${canary}`, receipt_email: canary }] } }
  }
  if (name === "charge") {
    return { ...object, refunds: { object: "list", data: [{ id: `re_${canary}` }], has_more: false } }
  }
  if (name === "subscription") {
    return { ...object, current_period_end: 1, plan: { id: `plan_${canary}` }, discount: { id: canary } }
  }
  if (name !== "invoice") return object
  const { parent, ...rest } = object
  const { metadata, subscription } = record(record(parent)["subscription_details"])
  return {
    ...rest,
    subscription: subscription ?? null,
    ...(subscription === undefined ? {} : { subscription_details: { metadata: metadata ?? null } }),
    lines: { ...record(object["lines"]), data: listOf(object["lines"]).map(olderLine) },
    paid: true,
    charge: `ch_${canary}`,
    payment_intent: `pi_${canary}`
  }
}
