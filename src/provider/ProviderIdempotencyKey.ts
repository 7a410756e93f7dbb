import { createHash } from "node:crypto"
import type { Tenant } from "../kit/Tenant.ts"
import type { ConnectedAccount } from "./ProviderCall.ts"

/**
 * The idempotency key of a call to the provider, derived from the caller's: a repeat after a crash or a lost answer
 * creates nothing twice, and equal keys of two organizations never collide. It is a hash, since the caller's key may
 * already have the provider's maximum of 255 characters. `step` distinguishes the calls of one operation.
 *
 * `effectKey` is the caller's key, or the one that `Idempotency` derives from it after a refused attempt, since the
 * provider stores a refusal, with the refused parameters, under its call's key.
 */
export const providerIdempotencyKey = (options: {
  readonly tenant: Tenant
  readonly account: ConnectedAccount
  readonly operation: string
  readonly effectKey: string
  readonly step?: string
}): string =>
  createHash("sha256")
    .update(
      JSON.stringify([
        options.tenant.organizationId,
        options.tenant.environment,
        options.account.accountId,
        options.operation,
        options.effectKey,
        options.step ?? ""
      ])
    )
    .digest("hex")
