import { Schema } from "effect"
import { EventType, eventData, eventSubjects } from "./Catalog.ts"
import type { Filters } from "./Filters.ts"

/** The metadata that only checkout sessions have. */
const ofSessions = "svc_checkout_page"

const isCataloged = Schema.is(EventType)

/** The filters that none of a type's events pass, since they lack what the filters read (contract 7.4, 7.7). */
const stopping = (type: EventType, filters: Filters): ReadonlyArray<string> => {
  const { items, metadata } = eventSubjects[type]
  const hasMoney = "currency" in eventData[type].fields
  const asksForPage = Object.hasOwn(filters.metadata ?? {}, ofSessions)
  return Object.keys(filters).filter((name) => {
    if (name === "metadata") return !metadata || (asksForPage && !type.startsWith("checkout."))
    return name === "products" || name === "prices" ? !items : !hasMoney
  })
}

/** A sentence for each subscribed type of the contract's catalog that can never be received with these filters. */
export const neverReceived = (types: ReadonlyArray<string>, filters: Filters): ReadonlyArray<string> =>
  types.filter(isCataloged).flatMap((type) => {
    const names = stopping(type, filters)
    return names.length === 0
      ? []
      : [
          `${type} is never received: its events lack what the ${names.length === 1 ? "filter" : "filters"} ${names.join(", ")} ${names.length === 1 ? "reads" : "read"}.`
        ]
  })
