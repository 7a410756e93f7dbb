import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../identity/Principal.ts"
import { BaseApi } from "../kit/BaseApi.ts"
import { makeSendTest } from "../publishing/SendTest.ts"
import { EndpointsApi } from "./Api.ts"
import { Endpoints } from "./Endpoints.ts"
import { makeEndpointMutations } from "./Mutations.ts"

/** Serves `EndpointsApi`. */
export const endpointsHttp = HttpApiBuilder.group(BaseApi.add(EndpointsApi), "endpoints", (handlers) =>
  Effect.gen(function* () {
    const endpoints = yield* Endpoints
    const mutations = yield* makeEndpointMutations
    const sendTest = yield* makeSendTest
    return handlers
      .handle("list", () => Effect.flatMap(Principal, (principal) => endpoints.list(principal)))
      .handle("create", ({ headers, payload }) =>
        Effect.flatMap(Principal, (principal) => mutations.create(principal, headers["idempotency-key"], payload))
      )
      .handle("get", ({ path }) => Effect.flatMap(Principal, (principal) => endpoints.get(principal, path.id)))
      .handle("update", ({ path, payload }) =>
        Effect.flatMap(Principal, (principal) => endpoints.update(principal, path.id, payload))
      )
      .handle("delete", ({ path }) => Effect.flatMap(Principal, (principal) => endpoints.delete(principal, path.id)))
      .handle("rotateSecret", ({ headers, path }) =>
        Effect.flatMap(Principal, (principal) => mutations.rotateSecret(principal, headers["idempotency-key"], path.id))
      )
      .handle("test", ({ headers, path, payload }) =>
        Effect.flatMap(Principal, (principal) => sendTest(principal, headers["idempotency-key"], path.id, payload))
      )
      .handle("skipped", ({ path, urlParams }) =>
        Effect.flatMap(Principal, (principal) => endpoints.listSkipped(principal, path.id, urlParams))
      )
  })
)
