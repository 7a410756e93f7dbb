import { checkSecret } from "./Verify.ts"

/**
 * A signing secret in the form that the libraries of Standard Webhooks take: `whsec_` and the base64 of the secret's own
 * characters. They verify `webhook-id`, `webhook-timestamp` and `webhook-signature`, which every delivery carries beside
 * `Service-Signature`. The API shows the same as `standardWebhooksSecret`, once; this computes it from a stored secret.
 *
 * Throws a `TypeError` if the secret is empty, or has spaces, line breaks or quotes in it.
 */
export const standardWebhooksSecret = (signingSecret: string): string => {
  checkSecret(signingSecret)
  return `whsec_${Buffer.from(signingSecret).toString("base64")}`
}
