import { Headers, HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../identity/Principal.ts"
import { BaseApi } from "../kit/BaseApi.ts"
import { makeSendTest } from "../publishing/SendTest.ts"
import { EndpointsApi } from "./Api.ts"
import { Endpoints } from "./Endpoints.ts"
import { makeEndpointMutations } from "./Mutations.ts"

/** A deletion is answered without a body; a refusal that was kept stays as it is. */
const withoutBody = (answer: HttpServerResponse.HttpServerResponse) =>
  answer.status >= 400
    ? answer
    : HttpServerResponse.empty({ headers: Headers.remove(answer.headers, ["content-type", "content-length"]) })

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
      .handle("update", ({ headers, path, payload }) =>
        Effect.flatMap(Principal, (principal) =>
          mutations.update(principal, headers["idempotency-key"], path.id, payload)
        )
      )
      .handle("delete", ({ headers, path }) =>
        Effect.map(
          Effect.flatMap(Principal, (principal) => mutations.delete(principal, headers["idempotency-key"], path.id)),
          withoutBody
        )
      )
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
