import { Effect, Schema } from "effect"
import { QueuedTest, type SendTest } from "../endpoints/Api.ts"
import type { PrincipalShape } from "../identity/Principal.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import type { EndpointId } from "../kit/Ids.ts"
import { SyntheticTests } from "./SyntheticTests.ts"

/** Queues a synthetic test, once per key if there is one, for both HTTP and the tool server. Returns a `QueuedTest`. */
export const makeSendTest = Effect.gen(function* () {
  const tests = yield* SyntheticTests
  const { runInTransaction } = yield* Idempotency
  return (principal: PrincipalShape, key: string | undefined, id: EndpointId, params: SendTest) =>
    runInTransaction(
      {
        tenant: principal,
        key,
        operation: "endpoints.test",
        parameters: { id, ...params },
        encode: Schema.encodeSync(QueuedTest)
      },
      Effect.succeed(tests.queue(principal, id, params.type))
    ).pipe(Effect.zipLeft(tests.announce))
})
