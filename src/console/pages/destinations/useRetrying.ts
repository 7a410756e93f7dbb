import { call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { waitsToRetry } from "../deliveries/timeline.ts"

/** The API's page limit. */
const mostLookedAt = 100

/**
 * Counts, by destination, the retries among the newest hundred queued deliveries: a receiver that is down shows here at
 * once, but in the final failures only hours later. Undefined while loading.
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
