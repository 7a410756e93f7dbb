import { type AnswerOf, call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"
import { waitsToRetry } from "../deliveries/timeline.ts"

/** The days that the overview and the list of destinations look back. */
export const shownDays = 30

const mostLookedAt = 100

/**
 * Counts, by destination, the retries among the newest hundred queued deliveries: a receiver that is down shows here at
 * once, and in the statistics, which know the whole number, within a minute. Undefined while loading.
 */
export const useRetrying = (sees = true): ReadonlyMap<string, number> | undefined => {
  const queued = useQuery(
    sees ? "deliveries/retrying" : null,
    (signal) => call("deliveries", "listAll", { urlParams: { state: "queued", limit: mostLookedAt } }, { signal }),
    { pollMillis: 15_000 }
  )
  if (queued.data === undefined) return undefined
  const counts = new Map<string, number>()
  for (const { endpointId } of queued.data.data.filter(waitsToRetry)) {
    counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1)
  }
  return counts
}

export type DestinationList = AnswerOf<"endpoints", "list">
export type Destination = AnswerOf<"endpoints", "get">

export const useDestinations = (pollMillis = 60_000, sees = true) =>
  useQuery(sees ? "endpoints/list" : null, (signal) => call("endpoints", "list", {}, { signal }), { pollMillis })

/** By id; undefined while loading. */
export type DestinationNames = ReadonlyMap<string, string> | undefined

export const namesOf = (list: DestinationList | undefined): DestinationNames =>
  list === undefined ? undefined : new Map(list.data.map(({ id, name }) => [id, name]))

export const useDestinationNames = (): DestinationNames => namesOf(useDestinations().data)

/** A destination's name in a list; its deliveries remain after it is deleted. */
export const nameOf = (names: DestinationNames, id: string): string =>
  names === undefined ? "…" : (names.get(id) ?? "Deleted destination")

export const useStatistics = (pollMillis: number, sees = true) =>
  useQuery(
    sees ? `statistics/${shownDays}` : null,
    (signal) => call("statistics", "get", { urlParams: { days: shownDays } }, { signal }),
    { pollMillis }
  )
