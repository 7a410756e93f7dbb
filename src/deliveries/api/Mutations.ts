import { Effect, Schema } from "effect"
import type { MutationAnswer } from "../../endpoints/Mutations.ts"
import type { EndpointDeleted, RecoveryInProgress, ResourceNotFound, ValidationFailed } from "../../errors/Errors.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { Idempotency } from "../../kit/Idempotency.ts"
import type { DeliveryId, EndpointId } from "../../kit/Ids.ts"
import type { ResendRefusal } from "../StateMachine.ts"
import { Delivery } from "./Api.ts"
import { Deliveries } from "./Deliveries.ts"
import { Recoveries } from "./Recoveries.ts"
import { Recovery, StartRecovery } from "./RecoveriesApi.ts"

// Mutations with their answers as the contract has them. A worker, which needs the services, does not load these

/** Re-sends a delivery, once per key if there is one, for both HTTP and the tool server. Returns a `Delivery`. */
export type RetryMutation = (
  principal: PrincipalShape,
  key: string | undefined,
  id: DeliveryId
) => MutationAnswer<ResourceNotFound | ResendRefusal>

/** Creates a `RetryMutation`. */
export const makeRetry: Effect.Effect<RetryMutation, never, Deliveries | Idempotency> = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const idempotency = yield* Idempotency
  return (principal, key, id) =>
    idempotency
      .runInTransaction(
        {
          tenant: principal,
          key,
          operation: "deliveries.retry",
          parameters: id,
          encode: Schema.encodeSync(Delivery)
        },
        Effect.succeed(deliveries.queueAgain(principal, id))
      )
      .pipe(Effect.zipLeft(deliveries.announce))
})

/** Starts a recovery, once per key if there is one, for both HTTP and the tool server. Returns a `Recovery`. */
export type StartRecoveryMutation = (
  principal: PrincipalShape,
  key: string | undefined,
  endpointId: EndpointId,
  params: StartRecovery
) => MutationAnswer<ResourceNotFound | EndpointDeleted | RecoveryInProgress | ValidationFailed>

/** Creates a `StartRecoveryMutation`. */
export const makeStartRecovery: Effect.Effect<StartRecoveryMutation, never, Recoveries | Idempotency> = Effect.gen(
  function* () {
    const recoveries = yield* Recoveries
    const idempotency = yield* Idempotency
    return (principal, key, endpointId, params) =>
      idempotency
        .runInTransaction(
          {
            tenant: principal,
            key,
            operation: "endpoints.recover",
            parameters: { id: endpointId, ...Schema.encodeSync(StartRecovery)(params) },
            encode: Schema.encodeSync(Recovery),
            status: 202
          },
          Effect.succeed(recoveries.queue(principal, endpointId, params.since))
        )
        .pipe(Effect.zipLeft(recoveries.announce))
  }
)
