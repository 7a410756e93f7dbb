import { Effect, Schema } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { Idempotency } from "../../kit/Idempotency.ts"
import { RecoveriesApi, Recovery, StartRecovery } from "./Api.ts"
import { Recoveries } from "./Recoveries.ts"

export const recoveriesHandlers = Effect.gen(function* () {
  const recoveries = yield* Recoveries
  const idempotency = yield* Idempotency
  return handlersOf(RecoveriesApi, {
    start: Effect.fnUntraced(function* ({ headers, path: { id }, payload }) {
      const tenant = yield* Principal
      const answer = yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "endpoints.recover",
          parameters: { id, ...Schema.encodeSync(StartRecovery)(payload) },
          encode: Schema.encodeSync(Recovery),
          status: 202
        },
        Effect.succeed(recoveries.queue(tenant, id, payload.since))
      )
      yield* recoveries.announce
      return answer
    }),
    list: ({ path, urlParams }) =>
      Effect.flatMap(Principal, (principal) => recoveries.list(principal, path.id, urlParams)),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => recoveries.get(principal, path.id, path.recoveryId))
  })
})

export const recoveriesHttp = serve(RecoveriesApi, recoveriesHandlers)
