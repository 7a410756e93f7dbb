import type { RequestOf } from "../../api/Types.ts"
import { createdBetween } from "../deliveries/historyFilters.ts"
import { isEventType } from "./eventTypes.ts"

/** Converts the events' filters between the address and the API. Pure. */

type Query = NonNullable<RequestOf<"events", "list">["urlParams"]>

/** The filters' names in the address. Times are Unix seconds. */
export const eventFilterNames = ["type", "payment", "from", "to"] as const
type EventFilters = Readonly<Record<(typeof eventFilterNames)[number], string>>

const providerIdForm = /^\w{3,255}$/

export const eventQuery = ({ from, payment, to, type }: EventFilters): Query => ({
  ...(isEventType(type) ? { type } : {}),
  ...(providerIdForm.test(payment) ? { payment_id: payment } : {}),
  ...createdBetween(from, to)
})
