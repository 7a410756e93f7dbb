import { Headers, HttpServerResponse } from "@effect/platform"
import { Effect, Schema } from "effect"
import { Principal } from "../identity/Principal.ts"
import { handlersOf, serve } from "../kit/Handlers.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import { EndpointId } from "../kit/Ids.ts"
import { SyntheticTests } from "../publishing/SyntheticTests.ts"
import { CreatedEndpoint, Endpoint, EndpointsApi, QueuedTest, RotatedEndpoint } from "./Api.ts"
import { Endpoints } from "./Endpoints.ts"

/** The body for a deleted endpoint, where one is required. */
export const DeletedEndpoint = Schema.Struct({ id: EndpointId, deleted: Schema.Literal(true) })

/** An idempotency key is valid across HTTP and the agents' tools: an answer is replayed to both. */
export const endpointsHandlers = Effect.gen(function* () {
  const endpoints = yield* Endpoints
  const tests = yield* SyntheticTests
  const idempotency = yield* Idempotency
  return handlersOf(EndpointsApi, {
    list: () => Effect.flatMap(Principal, endpoints.list),
    create: Effect.fnUntraced(function* ({ headers, payload }) {
      const tenant = yield* Principal
      return yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "endpoints.create",
          parameters: payload,
          encode: Schema.encodeSync(CreatedEndpoint)
        },
        endpoints.prepareCreate(tenant, payload)
      )
    }),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => endpoints.get(principal, path.id)),
    update: Effect.fnUntraced(function* ({ headers, path, payload }) {
      const tenant = yield* Principal
      return yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "endpoints.update",
          parameters: { id: path.id, ...payload },
          encode: Schema.encodeSync(Endpoint)
        },
        Effect.succeed(endpoints.update(tenant, path.id, payload))
      )
    }),
    delete: Effect.fnUntraced(function* ({ headers, path: { id } }) {
      const tenant = yield* Principal
      return yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "endpoints.delete",
          parameters: id,
          encode: Schema.encodeSync(DeletedEndpoint)
        },
        Effect.succeed(Effect.as(endpoints.delete(tenant, id), { id, deleted: true as const }))
      )
    }),
    rotateSecret: Effect.fnUntraced(function* ({ headers, path: { id } }) {
      const tenant = yield* Principal
      return yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "endpoints.rotate_secret",
          parameters: id,
          encode: Schema.encodeSync(RotatedEndpoint)
        },
        Effect.succeed(endpoints.rotateSecret(tenant, id))
      )
    }),
    test: Effect.fnUntraced(function* ({ headers, path, payload }) {
      const tenant = yield* Principal
      const answer = yield* idempotency.runInTransaction(
        {
          tenant,
          key: headers["idempotency-key"],
          operation: "endpoints.test",
          parameters: { id: path.id, ...payload },
          encode: Schema.encodeSync(QueuedTest)
        },
        Effect.succeed(tests.queue(tenant, path.id, payload.type))
      )
      yield* tests.announce
      return answer
    }),
    skipped: ({ path, urlParams }) =>
      Effect.flatMap(Principal, (principal) => endpoints.listSkipped(principal, path.id, urlParams))
  })
})

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
