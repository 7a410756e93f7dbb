import { HttpApiBuilder } from "@effect/platform"
import { Effect, Schema } from "effect"
import { Api } from "../Api.ts"
import { Principal } from "../identity/Principal.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import { CreatedEndpoint } from "./Api.ts"
import { Endpoints } from "./Endpoints.ts"

/** Serves `EndpointsApi`. */
export const endpointsHttp = HttpApiBuilder.group(Api, "endpoints", (handlers) =>
  Effect.gen(function* () {
    const endpoints = yield* Endpoints
    const idempotency = yield* Idempotency
    return handlers
      .handle("list", () => Effect.flatMap(Principal, (principal) => endpoints.list(principal)))
      .handle(
        "create",
        Effect.fnUntraced(function* ({ headers, payload }) {
          const principal = yield* Principal
          return yield* idempotency.runInTransaction(
            {
              tenant: principal,
              key: headers["idempotency-key"],
              operation: "endpoints.create",
              parameters: payload,
              encode: Schema.encodeSync(CreatedEndpoint)
            },
            endpoints.prepareCreate(principal, payload)
          )
        })
      )
      .handle("get", ({ path }) => Effect.flatMap(Principal, (principal) => endpoints.get(principal, path.id)))
      .handle("update", ({ path, payload }) =>
        Effect.flatMap(Principal, (principal) => endpoints.update(principal, path.id, payload))
      )
  })
)
