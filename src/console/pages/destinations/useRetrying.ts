import { call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { waitsToRetry } from "../deliveries/timeline.ts"

/** As many as the API answers at once. */
const mostLookedAt = 100

/**
 * How many of the newest hundred deliveries that are queued wait for another attempt, by destination: a receiver that is
 * down shows here at once, and hours later by what has failed for good. Undefined until it is known.
 */
export const useRetrying = (): ReadonlyMap<string, number> | undefined => {
  const { environment } = useWorkspace()
  const queued = useQuery(
    `${environment}/deliveries/retrying`,
    (signal) => call("deliveries", "listAll", { urlParams: { state: "queued", limit: mostLookedAt } }, { signal }),
    { pollMillis: 15_000 }
  )
  if (queued.data === undefined) return undefined
  const counts = new Map<string, number>()
  for (const delivery of queued.data.data.filter(waitsToRetry)) {
    counts.set(delivery.endpointId, (counts.get(delivery.endpointId) ?? 0) + 1)
  }
  return counts
}
