/** The headers of a delivery (contract 8.1), apart from what signs: the documents name them too. */

/** The header that carries the signature. */
export const signatureHeaderName = "Service-Signature"

/** The header that carries the delivery's id: the same on every attempt, and another one than the event's. */
export const deliveryIdHeaderName = "Service-Delivery-ID"

/** The header of a consumer's answer that says why it refused. Only the values below are read, and only of a 4xx. */
export const refusedHeaderName = "Service-Refused"

/** Why a consumer refused; each is kept as an attempt's error code, such as `consumer_refused_time`. */
export const refusedReasons = ["signature", "time", "version", "organization", "environment"] as const
