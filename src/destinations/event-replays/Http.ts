import { Effect } from "effect"
import { keyedWrite } from "../../identity/KeyedWrite.ts"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../platform/kit/Handlers.ts"
import { EventReplay, EventReplaysApi } from "./Api.ts"
import { EventReplays } from "./EventReplays.ts"

export const eventReplaysHandlers = handlersOf(
  EventReplaysApi,
  Effect.all([EventReplays, keyedWrite]),
  ([replays, write]) => ({
    start: (request) =>
      Effect.zipLeft(
        write.atOnce({ operation: "endpoints.replay", answer: EventReplay, status: 202 }, request, (tenant) =>
          replays.queue(tenant, request.path.id, request.payload)
        ),
        replays.announce
      ),
    list: ({ path, urlParams }) =>
      Effect.flatMap(Principal, (principal) => replays.list(principal, path.id, urlParams)),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => replays.get(principal, path.id, path.replayId)),
    cancel: (request) =>
      write.atOnce({ operation: "endpoints.cancel_replay", answer: EventReplay }, request, (tenant) =>
        replays.cancel(tenant, request.path.id, request.path.replayId)
      )
  })
)

export const eventReplaysHttp = serve(eventReplaysHandlers)
