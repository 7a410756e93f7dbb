import { checkSecret } from "./Verify.ts"

/**
 * Returns a signing secret in the form that Standard Webhooks libraries take: `whsec_` and the base64 of the secret's
 * own characters. They verify `webhook-id`, `webhook-timestamp` and `webhook-signature`, which every delivery carries
 * in addition to `Service-Signature`. The API shows this value once, as `standardWebhooksSecret`; this function
 * computes it from a stored secret.
 *
 * Throws a `TypeError` if the secret is empty or contains spaces, line breaks or quotes.
 */
export const standardWebhooksSecret = (signingSecret: string): string => {
  checkSecret(signingSecret)
  return `whsec_${Buffer.from(signingSecret).toString("base64")}`
}
