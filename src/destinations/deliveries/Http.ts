import { HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { keyedWrite } from "../../identity/KeyedWrite.ts"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../platform/kit/Handlers.ts"
import { DeliveriesApi, Delivery, type DeliveryDetail } from "./Api.ts"
import { Deliveries } from "./Deliveries.ts"

export const deliveriesHandlers = handlersOf(
  DeliveriesApi,
  Effect.all([Deliveries, keyedWrite]),
  ([deliveries, write]) => ({
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
    retry: (request) =>
      Effect.zipLeft(
        write.atOnce({ operation: "deliveries.retry", answer: Delivery }, request, (tenant) =>
          deliveries.queueAgain(tenant, request.path.id)
        ),
        deliveries.announce
      )
  })
)

export const deliveriesHttp = serve(deliveriesHandlers)
