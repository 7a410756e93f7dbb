import { Effect, Schema } from "effect"
import type { EmulatorError } from "../EmulatorError.ts"
import { type EventOrigin, emit, type Happening } from "../events/Events.ts"
import { notFound, orFail, type ProviderError, resourceMissing } from "../ProviderError.ts"
import type { Kind, Records } from "../Records.ts"
import { type Service, transactNow } from "../Service.ts"
import type { Scoped, Transaction } from "../store/Store.ts"
import type { ApiVersion } from "../Versions.ts"
import type { FormInput } from "./Form.ts"
import { decodeParams, listOf, optional, text } from "./Params.ts"
import { type AnswerShape, parseExpansion, presentAnswer } from "./Presentation.ts"

export interface RequestContext extends EventOrigin {
  readonly objects: Scoped
  readonly platform: { readonly id: string; readonly objects: Scoped }
  readonly baseUrl: string
  /** The same request on another account. */
  readonly in: (account: string) => RequestContext
  readonly emit: (happening: Happening) => void
  /** Stores the object, reports it and returns it. */
  readonly save: <K extends Kind>(
    kind: K,
    type: Happening["type"],
    object: Records[K] & { readonly id: string },
    previous?: Records[K]
  ) => Records[K]
}

interface Cause {
  readonly account: string
  /** Unix seconds. */
  readonly now: number
  /** The API request that makes the change; absent if none does. */
  readonly requestId?: string
  readonly idempotencyKey?: string | undefined
  /** The version of the notifications; by default the target's. */
  readonly notifiedIn?: ApiVersion | undefined
}

export const requestContext = (service: Service, transaction: Transaction, cause: Cause): RequestContext => {
  const { baseUrl, platformId } = service
  const { account, idempotencyKey, notifiedIn, now, requestId } = cause
  const origin: EventOrigin = {
    account,
    connected: account !== platformId,
    now,
    request: { id: requestId ?? null, idempotency_key: idempotencyKey ?? null },
    ...(notifiedIn === undefined ? {} : { notifiedIn })
  }
  const objects = transaction.in(account)
  return {
    ...origin,
    objects,
    platform: { id: platformId, objects: transaction.in(platformId) },
    baseUrl,
    in: (other) => requestContext(service, transaction, { ...cause, account: other }),
    emit: (happening) => void emit(objects, origin, happening),
    save: (kind, type, object, previous) => {
      objects.put(kind, object.id, object)
      emit(objects, origin, { type, shape: kind, object, ...(previous === undefined ? {} : { previous }) })
      return object
    }
  }
}

/** Acts on an account, in one transaction at the present time. */
export const onAccount = <A, E>(
  service: Service,
  cause: Omit<Cause, "now">,
  act: (context: RequestContext) => Effect.Effect<A, E>
): Effect.Effect<A, E | EmulatorError> =>
  transactNow(service.store, (transaction, now) => act(requestContext(service, transaction, { ...cause, now })))

/** The object whose id is in a URL, or named by a trigger. Error: `resource_missing` (404). */
export const existing = <K extends Kind>({ objects }: RequestContext, kind: K, id: string) =>
  orFail(objects.get(kind, id), notFound(kind, id))

/** The object that a parameter names. Error: `resource_missing` (400). */
export const named = <K extends Kind>({ objects }: RequestContext, kind: K, id: string, param: string = kind) =>
  orFail(objects.get(kind, id), resourceMissing(kind, id, param))

export type Prepared = (context: RequestContext) => Effect.Effect<object, ProviderError>

export interface Route {
  readonly method: "GET" | "POST" | "DELETE"
  /** Such as `/v1/products/:id`. */
  readonly path: string
  /** Decodes parameters and expansions; refusals here precede the operation. */
  readonly prepare: (input: FormInput, ids: ReadonlyArray<string>) => Effect.Effect<Prepared, ProviderError>
}

interface RouteDefinition<A, I> {
  readonly method: Route["method"]
  readonly path: string
  readonly answers: AnswerShape
  readonly params: Schema.Schema<A, I>
  /** @param id the first id in the path, or "" if it has none */
  readonly run: (context: RequestContext, params: A, id: string) => Effect.Effect<object, ProviderError>
}

const expandParams = Schema.Struct({ expand: optional(listOf(text())) })

/** Creates the route of an operation. All routes accept `expand`, which need not be in `params`. */
export const route = <A, I>({ answers, method, params, path, run }: RouteDefinition<A, I>): Route => ({
  method,
  path,
  prepare: Effect.fnUntraced(function* ({ expand, ...input }, ids) {
    const paths = yield* decodeParams(expandParams, expand === undefined ? {} : { expand })
    const expansion = yield* parseExpansion(answers, paths.expand ?? [])
    const decoded = yield* decodeParams(params, input)
    return (context: RequestContext) =>
      Effect.map(run(context, decoded, ids[0] ?? ""), (answer) =>
        presentAnswer(context.objects, answers, answer, expansion)
      )
  })
})

/** Parameters of an operation that accepts only `expand`. An empty struct would accept anything. */
export const noParams = Schema.Struct({ "": optional(Schema.Never) })
