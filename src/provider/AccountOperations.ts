import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import type { PermissionDenied, ProviderAccountNotConnected, ServiceUnavailable } from "../Errors.ts"
import { Principal } from "../identity/Principal.ts"
import { type AuditAction, makeAudit } from "../kit/Audit.ts"
import { Idempotency } from "../kit/Idempotency.ts"
import { Accounts } from "./Accounts.ts"
import type { ConnectedAccount } from "./Provider.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import { providerIdempotencyKey } from "./ProviderIdempotency.ts"
import type { ProviderObject } from "./Schemas.ts"

/** How handlers run what they do on the caller's connected account: what all families of operations share. */

/** What most operations are: one call on the caller's connected account. */
export const onAccount = <A>(
  call: (account: ConnectedAccount) => Effect.Effect<A, ProviderFailure | AccountAccessRevoked>
) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const principal = yield* Principal
    return yield* accounts.use(principal, call)
  })

/** What a write is, beside its call. */
export interface Write {
  /** As the idempotency keys know it, e.g. `products.create`. */
  readonly operation: string
  /** The caller's `Idempotency-Key`. Absent where the operation does not need one: then each request is an effect of its own. */
  readonly callerKey: string | undefined
  readonly parameters: unknown
  readonly action: AuditAction
  readonly targetType: string
  /** Whether the caller may have the stored answer to an earlier request. Default: who may make the request may. */
  readonly mayReplay?: (answer: unknown) => Effect.Effect<void, PermissionDenied>
}

/**
 * A write: repeated safely under the caller's key, here and at the provider; recorded with its answer. The key is looked
 * at before anything else, the provider and the account included.
 *
 * @param effect takes the key that its calls' keys are derived from: the caller's, until a try is refused
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
    const key = callerKey ?? randomUUID()
    return yield* idempotency.run(
      {
        tenant: principal,
        key,
        operation,
        parameters,
        encode: (object: ProviderObject) => object,
        onSuccess: (object) =>
          audit({ organizationId, environment, author, action, targetType, targetId: String(object["id"]) }),
        ...(mayReplay === undefined ? {} : { mayReplay })
      },
      effect
    )
  })

/** A write that is one call. */
export const writeOnAccount = (
  details: Write,
  call: (
    account: ConnectedAccount,
    options: { readonly idempotencyKey: string }
  ) => Effect.Effect<ProviderObject, ProviderFailure | AccountAccessRevoked>
) =>
  Effect.flatMap(Principal, (tenant) =>
    write(details, (effectKey) =>
      onAccount((account) => {
        const { operation } = details
        return call(account, { idempotencyKey: providerIdempotencyKey({ tenant, account, operation, effectKey }) })
      })
    )
  )
