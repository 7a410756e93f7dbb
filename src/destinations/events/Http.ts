import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../platform/kit/Handlers.ts"
import { EventsApi } from "./Api.ts"
import { Events } from "./Events.ts"

export const eventsHandlers = handlersOf(EventsApi, Events, (events) => ({
  list: ({ urlParams }) => Effect.flatMap(Principal, (principal) => events.list(principal, urlParams)),
  get: ({ path }) => Effect.flatMap(Principal, (principal) => events.get(principal, path.id))
}))

export const eventsHttp = serve(eventsHandlers)
