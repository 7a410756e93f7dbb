import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { EventReplays, makeCancelReplay, makeStartReplay } from "./EventReplays.ts"
import { EventReplaysApi } from "./EventReplaysApi.ts"

/** Serves `EventReplaysApi`. */
export const eventReplaysHttp = HttpApiBuilder.group(BaseApi.add(EventReplaysApi), "eventReplays", (handlers) =>
  Effect.gen(function* () {
    const replays = yield* EventReplays
    const start = yield* makeStartReplay
    const cancel = yield* makeCancelReplay
    return handlers
      .handle("start", ({ headers, path, payload }) =>
        Effect.flatMap(Principal, (principal) => start(principal, headers["idempotency-key"], path.id, payload))
      )
      .handle("list", ({ path, urlParams }) =>
        Effect.flatMap(Principal, (principal) => replays.list(principal, path.id, urlParams))
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(Principal, (principal) => replays.get(principal, path.id, path.replayId))
      )
      .handle("cancel", ({ headers, path }) =>
        Effect.flatMap(Principal, (principal) => cancel(principal, headers["idempotency-key"], path.id, path.replayId))
      )
  })
)
