import { type AnswerOf, call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"

export type DestinationList = AnswerOf<"endpoints", "list">
export type Destination = AnswerOf<"endpoints", "get">

/** The destinations of the workspace, with the catalog of event types. */
export const useDestinations = (pollMillis = 60_000) => {
  const { environment } = useWorkspace()
  return useQuery(`${environment}/endpoints/list`, (signal) => call("endpoints", "list", {}, { signal }), {
    pollMillis
  })
}

/** The destinations' names by id; undefined as long as the destinations are. */
export const namesOf = (list: DestinationList | undefined): ReadonlyMap<string, string> | undefined =>
  list === undefined ? undefined : new Map(list.data.map(({ id, name }) => [id, name]))

/** The destinations' names by id; undefined until they are known. */
export const useDestinationNames = (): ReadonlyMap<string, string> | undefined => namesOf(useDestinations().data)
