import { numberAt, textAt } from "../../api/Reading.ts"

/** Reads an event's subject and amount from its envelope. Pure. */

/** The fields of the principal amount; the first one present counts (contract 7.3). */
const amountFields = ["amount", "amount_received", "amount_total", "amount_paid", "amount_due", "amount_refunded"]

/** The principal amount in the smallest unit, with its currency; undefined if the event has none. */
export const moneyOf = (event: unknown): { readonly amount: number; readonly currency: string } | undefined => {
  const currency = textAt(event, "data", "currency")
  const amount = amountFields.map((field) => numberAt(event, "data", field)).find((value) => value !== undefined)
  return currency === undefined || !Number.isSafeInteger(amount) ? undefined : { amount: amount ?? 0, currency }
}

/** The fields with the id of an event's subject, the most specific first. */
const subjectFields = [
  "dispute_id",
  "session_id",
  "invoice_id",
  "subscription_id",
  "payout_id",
  "payment_id",
  "charge_id",
  "account_id"
]

export const subjectOf = (event: unknown): string | undefined =>
  subjectFields.map((field) => textAt(event, "data", field)).find((id) => id !== undefined)

export const paymentOf = (event: unknown): string | undefined => textAt(event, "data", "payment_id")

/** When the event happened, as opposed to when the service received it; undefined if the envelope does not say. */
export const happenedAt = (event: unknown): string | undefined => textAt(event, "created_at")

/** The provider's event id; undefined for synthetic events, which have none. */
export const providerEventOf = (event: unknown): string | undefined =>
  textAt(event, "source", "provider") === "svc_test" ? undefined : textAt(event, "source", "event_id")
