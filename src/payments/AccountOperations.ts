import { randomUUID } from "node:crypto"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { chosenIn, type KeyedRequest } from "../identity/KeyedWrite.ts"
import { Principal } from "../identity/Principal.ts"
import {
  type PermissionDenied,
  ProviderAnswer,
  ProviderObjectNotFound,
  ProviderRequestRefused
} from "../platform/errors/Errors.ts"
import { type AuditAction, makeAudit } from "../platform/kit/Audit.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { Idempotency } from "../platform/kit/Idempotency.ts"
import { orUnavailable } from "../platform/storage/Database.ts"
import { Accounts } from "./Accounts.ts"
import { mistakenId, type Named } from "./ObjectKinds.ts"
import { pageShownTo, type Reduced, shownTo } from "./PersonalData.ts"
import {
  type ConnectedAccount,
  type KeyFor,
  keysOf,
  type ListObjects,
  type ProviderCall,
  type RetrieveObject,
  type WriteOptions
} from "./ProviderCall.ts"
import type { AccountFailure } from "./ProviderErrors.ts"
import { objectNotFound, requestRefused } from "./RefusalReasons.ts"
import type { ProviderObject } from "./Schemas.ts"

/** A refusal of a missing object, with what the prefix and mode of the id say about the mistake. */
const explainIds =
  (request: Named, environment: Environment) =>
  <E extends { readonly _tag: string }>(failure: E): E | ProviderRequestRefused | ProviderObjectNotFound => {
    const isOf = failure instanceof ProviderRequestRefused || failure instanceof ProviderObjectNotFound
    if (!isOf || failure.code !== "provider_resource_missing") return failure
    const param = failure.cause instanceof ProviderAnswer ? failure.cause.param : undefined
    const known = (field: string) => mistakenId(request, { environment, field, param: param ?? "" })
    return failure instanceof ProviderObjectNotFound ? objectNotFound(failure, known) : requestRefused(failure, known)
  }

/**
 * Makes one call on the caller's connected account, which is all that most handlers do.
 *
 * @param request whose ids a refusal explains
 */
export const onAccount = <A>(call: (account: ConnectedAccount) => ProviderCall<A>, request: Named = {}) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const principal = yield* Principal
    return yield* Effect.mapError(accounts.use(principal, call), explainIds(request, principal.environment))
  })

export const listing =
  <P>(list: ListObjects<P>, reduced: Reduced = (object) => object) =>
  ({ urlParams }: { readonly urlParams: P }) =>
    Effect.flatMap(
      onAccount((account) => list(account, urlParams), { urlParams }),
      pageShownTo(reduced)
    )

/** The handlers of `list` and `get`, which show callers without `customers:read` only what `reduced` leaves. */
export const reading = <P>(list: ListObjects<P>, retrieve: RetrieveObject, reduced: Reduced = (object) => object) => ({
  list: listing(list, reduced),
  get: ({ path }: { readonly path: { readonly id: string } }) =>
    Effect.flatMap(
      onAccount((account) => retrieve(account, path.id), { path }),
      shownTo(reduced)
    )
})

export interface Write {
  /** The operation under which idempotency keys are stored, e.g. `products.create`. */
  readonly operation: string
  readonly action: AuditAction
  /** Fails if the caller may not see the stored answer to an earlier request. Default: every caller may. */
  readonly mayReplay?: (answer: unknown) => Effect.Effect<void, PermissionDenied>
}

/**
 * Runs a write idempotently under the caller's key, here and at the provider, and records it in the audit log. The key
 * is checked before the account and the provider. Without a key, if it is optional, every request is a new write whose
 * answer is not stored, since no request could ask for it again.
 *
 * @param effect receives the keys of its calls
 */
export const write = <R>(
  { action, ...operation }: Write,
  request: KeyedRequest,
  effect: (keyFor: KeyFor) => Effect.Effect<ProviderObject, AccountFailure | PermissionDenied, R>
) =>
  Effect.gen(function* () {
    const tenant = yield* Principal
    const idempotency = yield* Idempotency
    const audit = yield* makeAudit
    const { author, environment, organizationId } = tenant
    const record = (object: ProviderObject) =>
      audit({ organizationId, environment, author, action, targetId: String(object["id"]) })
    const run = (effectKey: string) =>
      Effect.mapError(effect(keysOf(tenant, operation.operation, effectKey)), explainIds(request, environment))
    const key = request.headers["idempotency-key"]
    if (key === undefined) {
      const object = yield* run(randomUUID())
      yield* orUnavailable(record(object))
      return HttpServerResponse.text(JSON.stringify(object), { contentType: "application/json" })
    }
    const parameters = chosenIn(request)
    return yield* idempotency.run(
      { ...operation, tenant, key, parameters, encode: (object: ProviderObject) => object, onSuccess: record },
      run
    )
  })

export const writeOnAccount = (
  details: Write,
  request: KeyedRequest,
  call: (account: ConnectedAccount, options: WriteOptions) => ProviderCall<ProviderObject>
) => write(details, request, (keyFor) => onAccount((account) => call(account, keyFor(account))))
