/** Reads an event's subject and amount from its envelope. Pure. */

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const dataOf = (event: unknown): Readonly<Record<string, unknown>> => {
  const data = isRecord(event) ? event["data"] : undefined
  return isRecord(data) ? data : {}
}

const textIn = (record: Readonly<Record<string, unknown>>, name: string): string | null => {
  const value = record[name]
  return typeof value === "string" && value !== "" ? value : null
}

/** The fields of the principal amount; the first one present counts (contract 7.3). */
const amountFields = ["amount", "amount_received", "amount_total", "amount_paid", "amount_due", "amount_refunded"]

/** The principal amount in the smallest unit, with its currency; null if the event has none. */
export const moneyOf = (event: unknown): { readonly amount: number; readonly currency: string } | null => {
  const data = dataOf(event)
  const currency = textIn(data, "currency")
  const amount = amountFields.map((field) => data[field]).find((value) => typeof value === "number")
  return currency === null || amount === undefined || !Number.isSafeInteger(amount) ? null : { amount, currency }
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

/** The provider's id of the event's subject; null if it names none. */
export const subjectOf = (event: unknown): string | null => {
  const data = dataOf(event)
  return subjectFields.map((field) => textIn(data, field)).find((id) => id !== null) ?? null
}

/** The id of the event's payment; null if it names none. */
export const paymentOf = (event: unknown): string | null => textIn(dataOf(event), "payment_id")

/** When the event happened, as opposed to when the service received it; null if the envelope does not say. */
export const happenedAt = (event: unknown): string | null => (isRecord(event) ? textIn(event, "created_at") : null)

/** The provider's event id; null for synthetic events, which have none. */
export const providerEventOf = (event: unknown): string | null => {
  const source = isRecord(event) ? event["source"] : undefined
  return isRecord(source) && source["provider"] !== "svc_test" ? textIn(source, "event_id") : null
}
