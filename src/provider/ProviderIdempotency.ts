import { createHash } from "node:crypto"
import type { Tenant } from "../identity/Principal.ts"
import type { ConnectedAccount } from "./Provider.ts"

/**
 * The idempotency key that goes to the provider, derived from the caller's: a repeat after a crash or a lost answer
 * makes nothing twice, and equal keys of two organizations never meet. The caller's own may already have the 255
 * characters that the provider takes, and one operation of ours can take several calls: `step` tells them apart.
 *
 * `effectKey` is the caller's key, or what `Idempotency` makes of it once a try under it was refused: the provider keeps
 * a refusal under the key of its call, with the parameters that it refused.
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
