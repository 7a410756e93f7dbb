import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import type { DeliveryDetail } from "./Api.ts"
import { DeliveriesApi } from "./Api.ts"
import { Deliveries } from "./Deliveries.ts"
import { makeRetry } from "./Mutations.ts"

/** Serves `DeliveriesApi`. */
export const deliveriesHttp = HttpApiBuilder.group(BaseApi.add(DeliveriesApi), "deliveries", (handlers) =>
  Effect.gen(function* () {
    const deliveries = yield* Deliveries
    const retry = yield* makeRetry
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
