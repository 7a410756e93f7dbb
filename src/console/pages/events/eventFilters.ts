import type { RequestOf } from "../../api/Types.ts"
import { createdBetween, eventIdForm } from "../deliveries/historyFilters.ts"
import { isEventType } from "./eventTypes.ts"

/** Converts the events' filters between the address and the API. Pure. */

type Query = NonNullable<RequestOf<"events", "list">["urlParams"]>

/** The filters' names in the address. Times are Unix seconds. */
export const eventFilterNames = ["type", "payment", "from", "to"] as const
type EventFilters = Readonly<Record<(typeof eventFilterNames)[number], string>>

export const noEventFilters: EventFilters = { type: "", payment: "", from: "", to: "" }

const providerIdForm = /^\w{3,255}$/

export const eventQuery = ({ from, payment, to, type }: EventFilters): Query => ({
  ...(isEventType(type) ? { type } : {}),
  ...(providerIdForm.test(payment) ? { payment_id: payment } : {}),
  ...createdBetween(from, to)
})

export type Found =
  | { readonly kind: "event"; readonly id: string }
  | { readonly kind: "payment"; readonly id: string }
  | { readonly kind: "nothing"; readonly problem: string }

/** Interprets an id to look up: an event's id opens its page, a payment's id filters the list. */
export const find = (written: string): Found => {
  const id = written.trim()
  if (eventIdForm.test(id)) return { kind: "event", id }
  if (/^pi_\w+$/.test(id) && providerIdForm.test(id)) return { kind: "payment", id }
  return {
    kind: "nothing",
    problem: id.startsWith("svc_")
      ? "This is not a whole event id: svc_evt_ is followed by 64 digits and letters from a to f"
      : "Write an event’s id, which begins with svc_evt_, or a payment’s, which begins with pi_"
  }
}
