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

/** The destinations' names by id; undefined until they are known. */
export const useDestinationNames = (): ReadonlyMap<string, string> | undefined => {
  const { data } = useDestinations()
  return data === undefined ? undefined : new Map(data.data.map(({ id, name }) => [id, name]))
}
