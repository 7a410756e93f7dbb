import type { RequestOf } from "../../api/Types.ts"
import { filled } from "../../components/forms/Reader.ts"
import { isEventType } from "../events/eventTypes.ts"

/** Converts the history's filters between the address and the API. Pure. */

type Query = NonNullable<RequestOf<"deliveries", "listAll">["urlParams"]>

/** The filters' names in the address. Times are Unix seconds. */
export const historyFilterNames = ["destination", "state", "type", "event", "from", "to"] as const

type HistoryFilters = Readonly<Record<(typeof historyFilterNames)[number], string>>

export const deliveryStates = ["queued", "delivered", "failed"] as const

export const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
export const eventIdForm = /^svc_(?:evt_[0-9a-f]{64}|test_evt_[\w-]{1,119})$/

const secondsIn = (text: string): number | undefined => (/^\d{1,10}$/.test(text) ? Number(text) : undefined)

export const createdBetween = (from: string, to: string) =>
  filled({ created_gte: secondsIn(from), created_lte: secondsIn(to) })

export const historyQuery = ({ destination, event, from, state, to, type }: HistoryFilters): Query => {
  const chosen = deliveryStates.find((known) => known === state)
  return {
    ...(uuidForm.test(destination) ? { endpoint_id: destination } : {}),
    ...(chosen === undefined ? {} : { state: chosen }),
    ...(isEventType(type) ? { type } : {}),
    ...(eventIdForm.test(event) ? { event_id: event } : {}),
    ...createdBetween(from, to)
  }
}

export const historyPath = (filters: Partial<HistoryFilters>): string => {
  const text = new URLSearchParams(filled(filters)).toString()
  return text === "" ? "/deliveries" : `/deliveries?${text}`
}
