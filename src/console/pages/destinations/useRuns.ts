import { useState } from "preact/hooks"
import { usePages } from "../../state/Query.ts"

interface Run {
  readonly id: string
  readonly state: string
}

interface PageOf<A> {
  readonly data: ReadonlyArray<A>
  readonly has_more: boolean
}

/** The query of one page of the list. */
interface PageQuery {
  readonly limit: number
  readonly starting_after?: string
}

const pageSize = 5
const movingMillis = 2000
const restingMillis = 30_000

/** Recoveries or replays, newest first; polled more often while one is running. */
export const useRuns = <A extends Run>(
  key: string,
  load: (query: PageQuery, signal: AbortSignal) => Promise<PageOf<A>>
) => {
  const [isMoving, setMoving] = useState(false)
  return usePages(
    key,
    (after, signal) =>
      load({ limit: pageSize, ...(after === undefined ? {} : { starting_after: after }) }, signal).then((page) => {
        // Running ones are among the newest
        if (after === undefined) setMoving(page.data.some(({ state }) => state === "running"))
        return page
      }),
    ({ id }) => id,
    { pollMillis: isMoving ? movingMillis : restingMillis }
  )
}
