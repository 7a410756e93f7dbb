import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { operationsOf, serve } from "../../kit/Operations.ts"
import { Events } from "./Events.ts"
import { EventsApi } from "./EventsApi.ts"

export const eventsOperations = Effect.map(Events, (events) =>
  operationsOf(EventsApi, {
    list: ({ urlParams }) => Effect.flatMap(Principal, (principal) => events.list(principal, urlParams)),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => events.get(principal, path.id))
  })
)

export const eventsHttp = serve(EventsApi, eventsOperations)
