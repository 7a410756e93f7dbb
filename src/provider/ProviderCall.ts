import type { Effect } from "effect"
import type { Environment } from "../events/Environment.ts"
import type { ProviderCallFailure } from "./ProviderErrors.ts"

/** The account that a call acts on. The service finds it by the authorized organization; callers never name it. */
export interface ConnectedAccount {
  readonly environment: Environment
  readonly accountId: string
}

/** The idempotency key of a write at the provider: the same key with the same parameters creates one object. */
export interface WriteOptions {
  readonly idempotencyKey: string
}

/** A call to the provider on a connected account. */
export type ProviderCall<A> = Effect.Effect<A, ProviderCallFailure>
