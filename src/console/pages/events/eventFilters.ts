import type { RequestOf } from "../../api/Types.ts"
import { secondsIn } from "../deliveries/historyFilters.ts"
import { isEventType } from "./eventTypes.ts"

/** The filters of the events: as the address has them, and as the API takes them. Pure. */

type Query = NonNullable<RequestOf<"events", "list">["urlParams"]>

/** What the address calls each filter. Times are Unix seconds. */
export const eventFilterNames = ["type", "payment", "from", "to"] as const
export type EventFilters = Readonly<Record<(typeof eventFilterNames)[number], string>>

export const noEventFilters: EventFilters = { type: "", payment: "", from: "", to: "" }

const eventIdForm = /^svc_(?:evt_[0-9a-f]{64}|test_evt_[\w-]{1,119})$/
const providerIdForm = /^\w{3,255}$/

/** The query of a page of the events. What the address has that can't be a filter is left out. */
export const eventQuery = ({ from, payment, to, type }: EventFilters): Query => {
  const since = secondsIn(from)
  const until = secondsIn(to)
  return {
    ...(isEventType(type) ? { type } : {}),
    ...(providerIdForm.test(payment) ? { payment_id: payment } : {}),
    ...(since === undefined ? {} : { created_gte: since }),
    ...(until === undefined ? {} : { created_lte: until })
  }
}

/** What an id leads to. */
export type Found =
  | { readonly kind: "event"; readonly id: string }
  | { readonly kind: "payment"; readonly id: string }
  | { readonly kind: "nothing"; readonly problem: string }

/** Reads an id that somebody looks for: an event's leads to its page, a payment's filters the list. */
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
