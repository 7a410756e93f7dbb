import { Effect, Schema } from "effect"
import { Idempotency } from "../platform/kit/Idempotency.ts"
import { Principal, type PrincipalShape } from "./Principal.ts"

export interface KeyedRequest {
  readonly headers: { readonly "idempotency-key"?: string }
  readonly path: { readonly organizationId: string }
  readonly payload?: unknown
}

/** Everything that the caller chose: the ids in the path and the body. The organization is the caller's own. */
export const chosenIn = ({ path: { organizationId: _, ...ids }, payload = {} }: KeyedRequest) => ({ ids, payload })

interface Write<A, I> {
  /** The operation under which its idempotency keys are stored, e.g. `endpoints.create`. */
  readonly operation: string
  readonly answer: Schema.Schema<A, I>
  /** The HTTP status of a success. Default 200. */
  readonly status?: number
}

/** The answer of a deletion to agents; HTTP answers without a body. */
export const Deleted = Schema.Struct({ id: Schema.String, deleted: Schema.Literal(true) })

/** The change and its answer are stored together or not at all; a key is valid across HTTP and tools. */
export const keyedWrite = Effect.map(Idempotency, (idempotency) => {
  /** Prepares the write outside the transaction, e.g. by a look-up. */
  const prepared = <A, I, E, R, E2, R2>(
    { answer, ...write }: Write<A, I>,
    request: KeyedRequest,
    prepare: (tenant: PrincipalShape) => Effect.Effect<Effect.Effect<A, E, R>, E2, R2>
  ) =>
    Effect.flatMap(Principal, (tenant) =>
      idempotency.runInTransaction(
        {
          ...write,
          tenant,
          key: request.headers["idempotency-key"],
          parameters: chosenIn(request),
          encode: Schema.encodeSync(answer)
        },
        prepare(tenant)
      )
    )
  const atOnce = <A, I, E, R>(
    write: Write<A, I>,
    request: KeyedRequest,
    run: (tenant: PrincipalShape) => Effect.Effect<A, E, R>
  ) => prepared(write, request, (tenant) => Effect.succeed(run(tenant)))
  /** Deletes what the path's `id` names. */
  const deletion = <E, R>(
    operation: string,
    request: KeyedRequest & { readonly path: { readonly id: string } },
    remove: (tenant: PrincipalShape) => Effect.Effect<void, E, R>
  ) =>
    atOnce({ operation, answer: Deleted }, request, (tenant) =>
      Effect.as(remove(tenant), { id: request.path.id, deleted: true as const })
    )
  return { prepared, atOnce, deletion }
})
