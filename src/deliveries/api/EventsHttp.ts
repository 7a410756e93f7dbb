import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { Events } from "./Events.ts"
import { EventsApi } from "./EventsApi.ts"

/** Serves `EventsApi`. */
export const eventsHttp = HttpApiBuilder.group(BaseApi.add(EventsApi), "events", (handlers) =>
  Effect.map(Events, (events) =>
    handlers
      .handle("list", ({ urlParams }) => Effect.flatMap(Principal, (principal) => events.list(principal, urlParams)))
      .handle("get", ({ path }) => Effect.flatMap(Principal, (principal) => events.get(principal, path.id)))
  )
)
