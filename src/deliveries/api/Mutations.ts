import { Effect, Schema } from "effect"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { Idempotency } from "../../kit/Idempotency.ts"
import type { DeliveryId, EndpointId, EventReplayId } from "../../kit/Ids.ts"
import { Delivery } from "./Api.ts"
import { Deliveries } from "./Deliveries.ts"
import { EventReplay, StartEventReplay } from "./EventReplay.ts"
import { EventReplays } from "./EventReplays.ts"
import { Recoveries } from "./Recoveries.ts"
import { Recovery, StartRecovery } from "./RecoveriesApi.ts"

/**
 * The mutations of deliveries, each once per key if there is one, for both HTTP and the tool server; their answers are as the
 * contract has them. A worker, which needs the services, does not load these.
 */
export const makeDeliveryMutations = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const recoveries = yield* Recoveries
  const replays = yield* EventReplays
  const { runInTransaction } = yield* Idempotency
  return {
    /** Re-sends a delivery. Returns a `Delivery`. */
    retry: (principal: PrincipalShape, key: string | undefined, id: DeliveryId) =>
      runInTransaction(
        {
          tenant: principal,
          key,
          operation: "deliveries.retry",
          parameters: id,
          encode: Schema.encodeSync(Delivery)
        },
        Effect.succeed(deliveries.queueAgain(principal, id))
      ).pipe(Effect.zipLeft(deliveries.announce)),

    /** Returns a `Recovery`. */
    startRecovery: (
      principal: PrincipalShape,
      key: string | undefined,
      endpointId: EndpointId,
      params: StartRecovery
    ) =>
      runInTransaction(
        {
          tenant: principal,
          key,
          operation: "endpoints.recover",
          parameters: { id: endpointId, ...Schema.encodeSync(StartRecovery)(params) },
          encode: Schema.encodeSync(Recovery),
          status: 202
        },
        Effect.succeed(recoveries.queue(principal, endpointId, params.since))
      ).pipe(Effect.zipLeft(recoveries.announce)),

    /** Returns an `EventReplay`. */
    startReplay: (
      principal: PrincipalShape,
      key: string | undefined,
      endpointId: EndpointId,
      params: StartEventReplay
    ) =>
      runInTransaction(
        {
          tenant: principal,
          key,
          operation: "endpoints.replay",
          parameters: { id: endpointId, ...Schema.encodeSync(StartEventReplay)(params) },
          encode: Schema.encodeSync(EventReplay),
          status: 202
        },
        Effect.succeed(replays.queue(principal, endpointId, params))
      ).pipe(Effect.zipLeft(replays.announce)),

    /** Returns an `EventReplay`. */
    cancelReplay: (principal: PrincipalShape, key: string | undefined, endpointId: EndpointId, id: EventReplayId) =>
      runInTransaction(
        {
          tenant: principal,
          key,
          operation: "endpoints.cancel_replay",
          parameters: { endpointId, id },
          encode: Schema.encodeSync(EventReplay)
        },
        Effect.succeed(replays.cancel(principal, endpointId, id))
      )
  }
})
