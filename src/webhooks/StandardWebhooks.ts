/**
 * A signing secret in the form that the libraries of Standard Webhooks take: `whsec_` and the base64 of the secret's own
 * characters. They verify `webhook-id`, `webhook-timestamp` and `webhook-signature`, which every delivery carries beside
 * `Service-Signature`. The API shows the same as `standardWebhooksSecret`, once; this computes it from a stored secret.
 *
 * Throws a `TypeError` if the secret is empty.
 */
export const standardWebhooksSecret = (signingSecret: string): string => {
  if (typeof signingSecret !== "string" || signingSecret === "")
    throw new TypeError("A signing secret must not be empty")
  return `whsec_${Buffer.from(signingSecret).toString("base64")}`
}
