/** The headers of a delivery (contract 8.1). Separate from the signing code, since documents name them too. */

export const signatureHeaderName = "Service-Signature"

/**
 * The headers of the Standard Webhooks specification, version 1: the event's id, the attempt's time in Unix seconds, and
 * one `v1,<base64>` for each secret, separated by spaces.
 */
export const webhookIdHeaderName = "webhook-id"
export const webhookTimestampHeaderName = "webhook-timestamp"
export const webhookSignatureHeaderName = "webhook-signature"

/** The header that carries the delivery's id: the same on every attempt, and different from the event's. */
export const deliveryIdHeaderName = "Service-Delivery-ID"

/** A consumer's reason for a refusal: only the values below are read, and only from a 4xx. */
export const refusedHeaderName = "Service-Refused"

/** Why a consumer refused; each is stored as an attempt's error code, such as `consumer_refused_time`. */
export const refusedReasons = ["signature", "time", "version", "organization", "environment"] as const
