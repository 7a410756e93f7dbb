import { type AnswerOf, call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"

export type DestinationList = AnswerOf<"endpoints", "list">
export type Destination = AnswerOf<"endpoints", "get">

/** The workspace's destinations, with the event type catalog. */
export const useDestinations = (pollMillis = 60_000) => {
  const { environment } = useWorkspace()
  return useQuery(`${environment}/endpoints/list`, (signal) => call("endpoints", "list", {}, { signal }), {
    pollMillis
  })
}

/** The destinations' names by id; undefined while loading. */
export const namesOf = (list: DestinationList | undefined): ReadonlyMap<string, string> | undefined =>
  list === undefined ? undefined : new Map(list.data.map(({ id, name }) => [id, name]))

/** The workspace's destination names by id; undefined while loading. */
export const useDestinationNames = (): ReadonlyMap<string, string> | undefined => namesOf(useDestinations().data)
