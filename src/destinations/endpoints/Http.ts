import { Headers, HttpServerResponse } from "@effect/platform"
import { Effect, Schema } from "effect"
import { keyedWrite } from "../../identity/KeyedWrite.ts"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../platform/kit/Handlers.ts"
import { EndpointId } from "../../platform/kit/Ids.ts"
import { SyntheticTests } from "../publishing/SyntheticTests.ts"
import { CreatedEndpoint, Endpoint, EndpointsApi, QueuedTest, RotatedEndpoint } from "./Api.ts"
import { Endpoints } from "./Endpoints.ts"

/** The body for a deleted endpoint, where one is required. */
export const DeletedEndpoint = Schema.Struct({ id: EndpointId, deleted: Schema.Literal(true) })

export const endpointsHandlers = handlersOf(
  EndpointsApi,
  Effect.all([Endpoints, SyntheticTests, keyedWrite]),
  ([endpoints, tests, write]) => ({
    list: () => Effect.flatMap(Principal, endpoints.list),
    create: (request) =>
      write.prepared({ operation: "endpoints.create", answer: CreatedEndpoint }, request, (tenant) =>
        endpoints.prepareCreate(tenant, request.payload)
      ),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => endpoints.get(principal, path.id)),
    update: (request) =>
      write.atOnce({ operation: "endpoints.update", answer: Endpoint }, request, (tenant) =>
        endpoints.update(tenant, request.path.id, request.payload)
      ),
    delete: (request) =>
      write.atOnce({ operation: "endpoints.delete", answer: DeletedEndpoint }, request, (tenant) =>
        Effect.as(endpoints.delete(tenant, request.path.id), { id: request.path.id, deleted: true as const })
      ),
    rotateSecret: (request) =>
      write.atOnce({ operation: "endpoints.rotate_secret", answer: RotatedEndpoint }, request, (tenant) =>
        endpoints.rotateSecret(tenant, request.path.id)
      ),
    test: (request) =>
      Effect.zipLeft(
        write.atOnce({ operation: "endpoints.test", answer: QueuedTest }, request, (tenant) =>
          tests.queue(tenant, request.path.id, request.payload.type)
        ),
        tests.announce
      ),
    skipped: ({ path, urlParams }) =>
      Effect.flatMap(Principal, (principal) => endpoints.listSkipped(principal, path.id, urlParams))
  })
)

/** Removes the body from a deletion's answer for HTTP, unless it is a stored refusal. */
const withoutBody = (answer: HttpServerResponse.HttpServerResponse) =>
  answer.status >= 400
    ? answer
    : HttpServerResponse.empty({ headers: Headers.remove(answer.headers, ["content-type", "content-length"]) })

export const endpointsHttp = serve(
  EndpointsApi,
  Effect.map(endpointsHandlers, (operations) => ({
    ...operations,
    delete: (request: Parameters<typeof operations.delete>[0]) => Effect.map(operations.delete(request), withoutBody)
  }))
)
