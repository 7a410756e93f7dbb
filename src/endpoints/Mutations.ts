import { Effect, Schema } from "effect"
import type { PrincipalShape } from "../identity/Principal.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import { EndpointId } from "../kit/Ids.ts"
import { CreatedEndpoint, type CreateEndpoint, Endpoint, RotatedEndpoint, type UpdateEndpoint } from "./Api.ts"
import { Endpoints } from "./Endpoints.ts"

/**
 * The mutations of endpoints that repeat safely under an `Idempotency-Key`, for HTTP and the tool server: a key means
 * the same operation on both, and is replayed across them.
 */

export const DeletedEndpoint = Schema.Struct({ id: EndpointId, deleted: Schema.Literal(true) })

/** Without a key, each call counts as new. */
export const makeEndpointMutations = Effect.gen(function* () {
  const endpoints = yield* Endpoints
  const { runInTransaction } = yield* Idempotency
  return {
    create: (principal: PrincipalShape, key: string | undefined, params: CreateEndpoint) =>
      runInTransaction(
        {
          tenant: principal,
          key,
          operation: "endpoints.create",
          parameters: params,
          encode: Schema.encodeSync(CreatedEndpoint)
        },
        endpoints.prepareCreate(principal, params)
      ),
    update: (principal: PrincipalShape, key: string | undefined, id: EndpointId, change: UpdateEndpoint) =>
      runInTransaction(
        {
          tenant: principal,
          key,
          operation: "endpoints.update",
          parameters: { id, ...change },
          encode: Schema.encodeSync(Endpoint)
        },
        Effect.succeed(endpoints.update(principal, id, change))
      ),
    delete: (principal: PrincipalShape, key: string | undefined, id: EndpointId) =>
      runInTransaction(
        {
          tenant: principal,
          key,
          operation: "endpoints.delete",
          parameters: id,
          encode: Schema.encodeSync(DeletedEndpoint)
        },
        Effect.succeed(Effect.as(endpoints.delete(principal, id), { id, deleted: true as const }))
      ),
    rotateSecret: (principal: PrincipalShape, key: string | undefined, id: EndpointId) =>
      runInTransaction(
        {
          tenant: principal,
          key,
          operation: "endpoints.rotate_secret",
          parameters: id,
          encode: Schema.encodeSync(RotatedEndpoint)
        },
        Effect.succeed(endpoints.rotateSecret(principal, id))
      )
  }
})
