import { Effect, Schema } from "effect"
import { QueuedTest, type SendTest } from "../endpoints/Api.ts"
import type { MutationAnswer } from "../endpoints/Mutations.ts"
import type { PrincipalShape } from "../identity/Principal.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import type { EndpointId } from "../kit/Ids.ts"
import { type SendTestError, SyntheticTests } from "./SyntheticTests.ts"

/** Queues a synthetic test under an `Idempotency-Key` and wakes the workers. Returns a `QueuedTest`. */
export type SendTestMutation = (
  principal: PrincipalShape,
  key: string | undefined,
  id: EndpointId,
  params: SendTest
) => MutationAnswer<SendTestError>

/** Creates a `SendTestMutation`, for both HTTP and the tool server, like `EndpointMutations`. */
export const makeSendTest: Effect.Effect<SendTestMutation, never, SyntheticTests | Idempotency> = Effect.gen(
  function* () {
    const tests = yield* SyntheticTests
    const idempotency = yield* Idempotency
    return (principal, key, id, params) =>
      idempotency
        .runInTransaction(
          {
            tenant: principal,
            key,
            operation: "endpoints.test",
            parameters: { id, ...params },
            encode: Schema.encodeSync(QueuedTest)
          },
          Effect.succeed(tests.queue(principal, id, params.type))
        )
        .pipe(Effect.zipLeft(tests.announce))
  }
)
