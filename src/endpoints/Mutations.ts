import { randomUUID } from "node:crypto"
import type { HttpServerResponse } from "@effect/platform"
import { Effect, Schema } from "effect"
import type {
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  ResourceNotFound,
  ServiceUnavailable
} from "../errors/Errors.ts"
import type { PrincipalShape } from "../identity/Principal.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import type { EndpointId } from "../kit/Ids.ts"
import { CreatedEndpoint, type CreateEndpoint, RotatedEndpoint } from "./Api.ts"
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

export interface EndpointMutations {
  /** Returns a `CreatedEndpoint`. */
  readonly create: (
    principal: PrincipalShape,
    key: string,
    params: CreateEndpoint
  ) => MutationAnswer<CreateEndpointError>
  /** Returns a `RotatedEndpoint`; without a key, each call rotates again. */
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
      rotateSecret: (principal, key, id) =>
        idempotency.runInTransaction(
          {
            tenant: principal,
            key: key ?? randomUUID(),
            operation: "endpoints.rotate_secret",
            parameters: id,
            encode: Schema.encodeSync(RotatedEndpoint)
          },
          Effect.succeed(endpoints.rotateSecret(principal, id))
        )
    }
  }
)
