import { randomBytes } from "node:crypto"
import { Redacted } from "effect"
import type { Tenant } from "../identity/Principal.ts"

/** A new signing secret: `whsec_` and 32 random bytes as base64url. The whole string is the HMAC key. */
export const newSigningSecret = (): Redacted.Redacted => Redacted.make(`whsec_${randomBytes(32).toString("base64url")}`)

/** The context that a stored secret's ciphertext is bound to: it decrypts only in its own row. */
export const secretContext = (tenant: Tenant, secretId: string): string =>
  `endpoint-secret\n${tenant.organizationId}\n${tenant.environment}\n${secretId}`
