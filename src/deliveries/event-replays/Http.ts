import { Effect, Schema } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { Idempotency } from "../../kit/Idempotency.ts"
import { EventReplaysApi } from "./Api.ts"
import { EventReplay, StartEventReplay } from "./EventReplay.ts"
import { EventReplays } from "./EventReplays.ts"

export const eventReplaysHandlers = Effect.gen(function* () {
  const replays = yield* EventReplays
  const idempotency = yield* Idempotency
  return handlersOf(EventReplaysApi, {
    start: Effect.fnUntraced(function* ({ headers, path: { id }, payload }) {
      const tenant = yield* Principal
      const answer = yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "endpoints.replay",
          parameters: { id, ...Schema.encodeSync(StartEventReplay)(payload) },
          encode: Schema.encodeSync(EventReplay),
          status: 202
        },
        Effect.succeed(replays.queue(tenant, id, payload))
      )
      yield* replays.announce
      return answer
    }),
    list: ({ path, urlParams }) =>
      Effect.flatMap(Principal, (principal) => replays.list(principal, path.id, urlParams)),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => replays.get(principal, path.id, path.replayId)),
    cancel: Effect.fnUntraced(function* ({ headers, path: { id: endpointId, replayId: id } }) {
      const tenant = yield* Principal
      return yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "endpoints.cancel_replay",
          parameters: { endpointId, id },
          encode: Schema.encodeSync(EventReplay)
        },
        Effect.succeed(replays.cancel(tenant, endpointId, id))
      )
    })
  })
})

export const eventReplaysHttp = serve(EventReplaysApi, eventReplaysHandlers)
