import { createHmac } from "node:crypto"

/**
 * The value of the provider's `Stripe-Signature` header: `t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`, keyed
 * with the bytes of the whole secret.
 */
export const signatureHeader = (secret: string, timestamp: number, body: string): string =>
  `t=${timestamp},v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`
