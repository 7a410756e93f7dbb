import { createHash } from "node:crypto"
import type { Effect } from "effect"
import type { Environment } from "../platform/kit/Environment.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import type { ListLineItems } from "./Endpoints.ts"
import type { ProviderCallFailure } from "./ProviderErrors.ts"
import type { ProviderObject, ProviderPage } from "./Schemas.ts"

/** The account that a call acts on. The service finds it by the authorized organization; callers never name it. */
export interface ConnectedAccount {
  readonly environment: Environment
  readonly accountId: string
}

/** The idempotency key of a write at the provider: the same key with the same parameters creates one object. */
export interface WriteOptions {
  readonly idempotencyKey: string
}

export type ProviderCall<A> = Effect.Effect<A, ProviderCallFailure>

/** The shapes of most calls, whose parameters and answers are the provider's objects. */
export type ListObjects<Query> = (account: ConnectedAccount, query: Query) => ProviderCall<ProviderPage>
export type RetrieveObject = (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
export type CreateObject<Params, A = ProviderObject> = (
  account: ConnectedAccount,
  params: Params,
  options: WriteOptions
) => ProviderCall<A>
export type ChangeObject<Changes> = (
  account: ConnectedAccount,
  id: string,
  changes: Changes,
  options: WriteOptions
) => ProviderCall<ProviderObject>

export type ListLines = (account: ConnectedAccount, id: string, params: ListLineItems) => ProviderCall<ProviderPage>

/** Derives the key of a call to the provider from the operation's; `step` distinguishes the calls of one operation. */
export type KeyFor = (account: ConnectedAccount, step?: string) => WriteOptions

/**
 * The idempotency keys of an operation's calls to the provider, derived from the caller's: a repeat after a crash or a
 * lost answer creates nothing twice, and equal keys of two organizations never collide. Each is a hash, since the
 * caller's key may already have the provider's maximum of 255 characters.
 *
 * @param effectKey the caller's key, or the one that `Idempotency` derives from it after a refused attempt, since the
 *   provider stores a refusal, with the refused parameters, under its call's key
 */
export const keysOf =
  ({ environment, organizationId }: Tenant, operation: string, effectKey: string): KeyFor =>
  ({ accountId }, step = "") => ({
    idempotencyKey: createHash("sha256")
      .update(JSON.stringify([organizationId, environment, accountId, operation, effectKey, step]))
      .digest("hex")
  })
