import { randomUUID } from "node:crypto"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import type { PermissionDenied, ProviderAccountNotConnected, ServiceUnavailable } from "../errors/Errors.ts"
import { Principal } from "../identity/Principal.ts"
import { type AuditAction, makeAudit } from "../kit/Audit.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import { orUnavailable } from "../storage/Database.ts"
import { Accounts } from "./Accounts.ts"
import type { ConnectedAccount, ProviderCall, WriteOptions } from "./ProviderCall.ts"
import type { ProviderFailure } from "./ProviderErrors.ts"
import { providerIdempotencyKey } from "./ProviderIdempotencyKey.ts"
import type { ProviderObject } from "./Schemas.ts"

/** Makes one call on the caller's connected account, which is all that most handlers do. */
export const onAccount = <A>(call: (account: ConnectedAccount) => ProviderCall<A>) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const principal = yield* Principal
    return yield* accounts.use(principal, call)
  })

/** The description of a write, without its call. */
export interface Write {
  /** The operation under which idempotency keys are stored, e.g. `products.create`. */
  readonly operation: string
  /** The caller's `Idempotency-Key`; undefined if it is optional and absent, which makes every request a new write. */
  readonly callerKey: string | undefined
  readonly parameters: unknown
  readonly action: AuditAction
  readonly targetType: string
  /** Fails if the caller may not see the stored answer to an earlier request. Default: every caller may. */
  readonly mayReplay?: (answer: unknown) => Effect.Effect<void, PermissionDenied>
}

/**
 * Runs a write idempotently under the caller's key, here and at the provider, and records it in the audit log. The key
 * is checked before the account and the provider. Without a key the answer is not stored, since no request could ask
 * for it again.
 *
 * @param effect receives the key from which its calls' keys are derived: the caller's, until an attempt is refused
 */
export const write = <R>(
  { action, callerKey, mayReplay, operation, parameters, targetType }: Write,
  effect: (
    effectKey: string
  ) => Effect.Effect<
    ProviderObject,
    ProviderFailure | ProviderAccountNotConnected | PermissionDenied | ServiceUnavailable,
    R
  >
) =>
  Effect.gen(function* () {
    const principal = yield* Principal
    const idempotency = yield* Idempotency
    const audit = yield* makeAudit
    const { author, environment, organizationId } = principal
    const record = (object: ProviderObject) =>
      audit({ organizationId, environment, author, action, targetType, targetId: String(object["id"]) })
    if (callerKey === undefined) {
      const object = yield* effect(randomUUID())
      yield* orUnavailable(record(object))
      return HttpServerResponse.text(JSON.stringify(object), { contentType: "application/json" })
    }
    return yield* idempotency.run(
      {
        tenant: principal,
        key: callerKey,
        operation,
        parameters,
        encode: (object: ProviderObject) => object,
        onSuccess: record,
        ...(mayReplay === undefined ? {} : { mayReplay })
      },
      effect
    )
  })

/** Runs a write that consists of a single call. */
export const writeOnAccount = (
  details: Write,
  call: (account: ConnectedAccount, options: WriteOptions) => ProviderCall<ProviderObject>
) =>
  Effect.flatMap(Principal, (tenant) =>
    write(details, (effectKey) =>
      onAccount((account) => {
        const { operation } = details
        return call(account, { idempotencyKey: providerIdempotencyKey({ tenant, account, operation, effectKey }) })
      })
    )
  )
