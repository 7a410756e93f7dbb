import { useState } from "preact/hooks"
import { usePages } from "../../state/Query.ts"

const pageSize = 5
const movingMillis = 2000
const restingMillis = 30_000

/** Recoveries or replays, newest first; polled more often while one is running. */
export const useRuns = <A extends { readonly id: string; readonly state: string }>(
  key: string,
  load: Parameters<typeof usePages<A>>[1]
) => {
  const [isMoving, setMoving] = useState(false)
  return usePages<A>(
    key,
    async (query, signal) => {
      const page = await load(query, signal)
      // Running ones are among the newest
      if (query.starting_after === undefined) setMoving(page.data.some(({ state }) => state === "running"))
      return page
    },
    { limit: pageSize, pollMillis: isMoving ? movingMillis : restingMillis }
  )
}
