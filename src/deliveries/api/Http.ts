import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import type { DeliveryDetail } from "./Api.ts"
import { DeliveriesApi } from "./Api.ts"
import { Deliveries } from "./Deliveries.ts"
import { EventReplays } from "./EventReplays.ts"
import { EventReplaysApi } from "./EventReplaysApi.ts"
import { Events } from "./Events.ts"
import { EventsApi } from "./EventsApi.ts"
import { makeDeliveryMutations } from "./Mutations.ts"
import { Recoveries } from "./Recoveries.ts"
import { RecoveriesApi } from "./RecoveriesApi.ts"

export const deliveriesHttp = HttpApiBuilder.group(BaseApi.add(DeliveriesApi), "deliveries", (handlers) =>
  Effect.gen(function* () {
    const deliveries = yield* Deliveries
    const { retry } = yield* makeDeliveryMutations
    return handlers
      .handle("list", ({ path, urlParams }) =>
        Effect.flatMap(Principal, (principal) => deliveries.list(principal, path.id, urlParams))
      )
      .handle("listAll", ({ urlParams }) =>
        Effect.flatMap(Principal, (principal) => deliveries.listAll(principal, urlParams))
      )
      .handle("get", ({ path }) =>
        Effect.map(
          Effect.flatMap(Principal, (principal) => deliveries.get(principal, path.id)),
          // Read more often than anything else, so not encoded by the schema. JSON writes times the same way; a test
          // checks the answer against the schema
          (detail: DeliveryDetail) => HttpServerResponse.unsafeJson(detail)
        )
      )
      .handle("retry", ({ headers, path }) =>
        Effect.flatMap(Principal, (principal) => retry(principal, headers["idempotency-key"], path.id))
      )
  })
)

export const eventsHttp = HttpApiBuilder.group(BaseApi.add(EventsApi), "events", (handlers) =>
  Effect.map(Events, (events) =>
    handlers
      .handle("list", ({ urlParams }) => Effect.flatMap(Principal, (principal) => events.list(principal, urlParams)))
      .handle("get", ({ path }) => Effect.flatMap(Principal, (principal) => events.get(principal, path.id)))
  )
)

export const recoveriesHttp = HttpApiBuilder.group(BaseApi.add(RecoveriesApi), "recoveries", (handlers) =>
  Effect.gen(function* () {
    const recoveries = yield* Recoveries
    const { startRecovery } = yield* makeDeliveryMutations
    return handlers
      .handle("start", ({ headers, path, payload }) =>
        Effect.flatMap(Principal, (principal) => startRecovery(principal, headers["idempotency-key"], path.id, payload))
      )
      .handle("list", ({ path, urlParams }) =>
        Effect.flatMap(Principal, (principal) => recoveries.list(principal, path.id, urlParams))
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(Principal, (principal) => recoveries.get(principal, path.id, path.recoveryId))
      )
  })
)

export const eventReplaysHttp = HttpApiBuilder.group(BaseApi.add(EventReplaysApi), "eventReplays", (handlers) =>
  Effect.gen(function* () {
    const replays = yield* EventReplays
    const { cancelReplay, startReplay } = yield* makeDeliveryMutations
    return handlers
      .handle("start", ({ headers, path, payload }) =>
        Effect.flatMap(Principal, (principal) => startReplay(principal, headers["idempotency-key"], path.id, payload))
      )
      .handle("list", ({ path, urlParams }) =>
        Effect.flatMap(Principal, (principal) => replays.list(principal, path.id, urlParams))
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(Principal, (principal) => replays.get(principal, path.id, path.replayId))
      )
      .handle("cancel", ({ headers, path }) =>
        Effect.flatMap(Principal, (principal) =>
          cancelReplay(principal, headers["idempotency-key"], path.id, path.replayId)
        )
      )
  })
)
