import { randomBytes } from "node:crypto"
import { Redacted } from "effect"
import type { Tenant } from "../../identity/Principal.ts"

/** A new signing secret: `whsec_` and 32 random bytes as base64url. The whole string is the HMAC key. */
export const newSigningSecret = (): Redacted.Redacted => Redacted.make(`whsec_${randomBytes(32).toString("base64url")}`)

/**
 * The key of a signing secret in the form that Standard Webhooks libraries take: `whsec_` and the base64 of the key's
 * bytes, which are those of the whole secret.
 */
export const standardWebhooksSecretOf = (signingSecret: string): string =>
  `whsec_${Buffer.from(signingSecret).toString("base64")}`

/** The context that a stored secret's ciphertext is bound to: it decrypts only in its own row. */
export const secretContext = (tenant: Tenant, secretId: string): string =>
  `endpoint-secret\n${tenant.organizationId}\n${tenant.environment}\n${secretId}`
