import { useEffect, useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"

/** How often a delivery is read again: often while it waits or is under way, since then it moves by itself. */
const waitingMillis = 1500
const endedMillis = 15_000

/** One delivery with its attempts, kept up to date while the tab is shown. Without an id it reads nothing. */
export const useDelivery = (id: string | null) => {
  const { environment } = useWorkspace()
  const [pollMillis, setPollMillis] = useState(waitingMillis)
  const query = useQuery(
    id === null ? null : `${environment}/deliveries/one/${id}`,
    (signal) => call("deliveries", "get", { path: { id: id ?? "" } }, { signal }),
    { pollMillis }
  )
  const state = query.data?.state
  useEffect(() => setPollMillis(state === "delivered" || state === "failed" ? endedMillis : waitingMillis), [state])
  return query
}
