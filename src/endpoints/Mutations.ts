import type { HttpServerResponse } from "@effect/platform"
import { Effect, Schema } from "effect"
import type {
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  IntegrationFilterInvalid,
  IntegrationFilterUnknown,
  ResourceNotFound,
  ServiceUnavailable,
  ValidationFailed
} from "../errors/Errors.ts"
import type { PrincipalShape } from "../identity/Principal.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import { EndpointId } from "../kit/Ids.ts"
import { CreatedEndpoint, type CreateEndpoint, Endpoint, RotatedEndpoint, type UpdateEndpoint } from "./Api.ts"
import { type CreateEndpointError, Endpoints } from "./Endpoints.ts"

/**
 * The mutations of endpoints that repeat safely under an `Idempotency-Key`, for HTTP and the tool server: a key means
 * the same operation on both, and is replayed across them.
 */

/** The answer of a mutation, replayed if its key was used before. */
export type MutationAnswer<E> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E | IdempotencyKeyReused | IdempotencyRequestInProgress | ServiceUnavailable
>

/** What is said of a deleted endpoint. */
export const DeletedEndpoint = Schema.Struct({ id: EndpointId, deleted: Schema.Literal(true) })

/** Without a key, each call counts as new. */
export interface EndpointMutations {
  /** Returns a `CreatedEndpoint`. */
  readonly create: (
    principal: PrincipalShape,
    key: string | undefined,
    params: CreateEndpoint
  ) => MutationAnswer<CreateEndpointError>
  /** Returns an `Endpoint`. */
  readonly update: (
    principal: PrincipalShape,
    key: string | undefined,
    id: EndpointId,
    change: UpdateEndpoint
  ) => MutationAnswer<ResourceNotFound | IntegrationFilterUnknown | IntegrationFilterInvalid | ValidationFailed>
  /** Returns a `DeletedEndpoint`. */
  readonly delete: (
    principal: PrincipalShape,
    key: string | undefined,
    id: EndpointId
  ) => MutationAnswer<ResourceNotFound>
  /** Returns a `RotatedEndpoint`. */
  readonly rotateSecret: (
    principal: PrincipalShape,
    key: string | undefined,
    id: EndpointId
  ) => MutationAnswer<ResourceNotFound>
}

/** Creates the `EndpointMutations`. */
export const makeEndpointMutations: Effect.Effect<EndpointMutations, never, Endpoints | Idempotency> = Effect.gen(
  function* () {
    const endpoints = yield* Endpoints
    const idempotency = yield* Idempotency
    return {
      create: (principal, key, params) =>
        idempotency.runInTransaction(
          {
            tenant: principal,
            key,
            operation: "endpoints.create",
            parameters: params,
            encode: Schema.encodeSync(CreatedEndpoint)
          },
          endpoints.prepareCreate(principal, params)
        ),
      update: (principal, key, id, change) =>
        idempotency.runInTransaction(
          {
            tenant: principal,
            key,
            operation: "endpoints.update",
            parameters: { id, ...change },
            encode: Schema.encodeSync(Endpoint)
          },
          Effect.succeed(endpoints.update(principal, id, change))
        ),
      delete: (principal, key, id) =>
        idempotency.runInTransaction(
          {
            tenant: principal,
            key,
            operation: "endpoints.delete",
            parameters: id,
            encode: Schema.encodeSync(DeletedEndpoint)
          },
          Effect.succeed(Effect.as(endpoints.delete(principal, id), { id, deleted: true as const }))
        ),
      rotateSecret: (principal, key, id) =>
        idempotency.runInTransaction(
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
  }
)
