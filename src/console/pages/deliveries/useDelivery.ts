import { useEffect, useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"

/** Polling intervals: short while a delivery is queued or running, since it then changes without user action. */
const waitingMillis = 1500
const endedMillis = 15_000

/** Reads one delivery with its attempts, and polls it while the tab is visible. */
export const useDelivery = (id: string) => {
  const [pollMillis, setPollMillis] = useState(waitingMillis)
  const query = useQuery(`deliveries/one/${id}`, (signal) => call("deliveries", "get", { path: { id } }, { signal }), {
    pollMillis
  })
  const state = query.data?.state
  useEffect(() => setPollMillis(state === "delivered" || state === "failed" ? endedMillis : waitingMillis), [state])
  return query
}
