import type { RequestOf } from "../../api/Types.ts"
import { isEventType } from "../events/eventTypes.ts"

/** The filters of the history: as the address has them, and as the API takes them. Pure. */

type Query = NonNullable<RequestOf<"deliveries", "listAll">["urlParams"]>

/** What the address calls each filter. Times are Unix seconds. */
export const historyFilterNames = ["destination", "state", "type", "event", "from", "to"] as const

/** The address's filters; "" means none. */
export type HistoryFilters = Readonly<Record<(typeof historyFilterNames)[number], string>>

export const deliveryStates = ["queued", "delivered", "failed"] as const
export type DeliveryState = (typeof deliveryStates)[number]

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const eventIdForm = /^svc_(?:evt_[0-9a-f]{64}|test_evt_[\w-]{1,119})$/

/** Unix seconds in the address; undefined if they are none. */
export const secondsIn = (text: string): number | undefined => (/^\d{1,10}$/.test(text) ? Number(text) : undefined)

/** The query of a page of the history. What the address has that can't be a filter is left out. */
export const historyQuery = ({ destination, event, from, state, to, type }: HistoryFilters): Query => {
  const chosen = deliveryStates.find((known) => known === state)
  const since = secondsIn(from)
  const until = secondsIn(to)
  return {
    ...(uuidForm.test(destination) ? { endpoint_id: destination } : {}),
    ...(chosen === undefined ? {} : { state: chosen }),
    ...(isEventType(type) ? { type } : {}),
    ...(eventIdForm.test(event) ? { event_id: event } : {}),
    ...(since === undefined ? {} : { created_gte: since }),
    ...(until === undefined ? {} : { created_lte: until })
  }
}

/** Whether the address has any filter. */
export const hasFilters = (filters: HistoryFilters): boolean => historyFilterNames.some((name) => filters[name] !== "")

/** The address of the history with filters, below the workspace. */
export const historyPath = (filters: Partial<HistoryFilters>): string => {
  const query = new URLSearchParams()
  for (const name of historyFilterNames) {
    const value = filters[name]
    if (value !== undefined && value !== "") query.set(name, value)
  }
  const text = query.toString()
  return text === "" ? "/deliveries" : `/deliveries?${text}`
}

export const noFilters: HistoryFilters = { destination: "", state: "", type: "", event: "", from: "", to: "" }
