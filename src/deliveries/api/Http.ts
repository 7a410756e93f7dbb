import { HttpServerResponse } from "@effect/platform"
import { Effect, Schema } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { Idempotency } from "../../kit/Idempotency.ts"
import { DeliveriesApi, Delivery, type DeliveryDetail } from "./Api.ts"
import { Deliveries } from "./Deliveries.ts"

export const deliveriesHandlers = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const idempotency = yield* Idempotency
  return handlersOf(DeliveriesApi, {
    list: ({ path, urlParams }) =>
      Effect.flatMap(Principal, (principal) => deliveries.list(principal, path.id, urlParams)),
    listAll: ({ urlParams }) => Effect.flatMap(Principal, (principal) => deliveries.listAll(principal, urlParams)),
    get: ({ path }) =>
      Effect.map(
        Effect.flatMap(Principal, (principal) => deliveries.get(principal, path.id)),
        // The most frequent read, so not encoded by the schema. JSON writes times the same way; a test checks the
        // answer against the schema
        (detail: DeliveryDetail) => HttpServerResponse.unsafeJson(detail)
      ),
    retry: Effect.fnUntraced(function* ({ headers, path: { id } }) {
      const tenant = yield* Principal
      const answer = yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "deliveries.retry",
          parameters: id,
          encode: Schema.encodeSync(Delivery)
        },
        Effect.succeed(deliveries.queueAgain(tenant, id))
      )
      yield* deliveries.announce
      return answer
    })
  })
})

export const deliveriesHttp = serve(DeliveriesApi, deliveriesHandlers)
