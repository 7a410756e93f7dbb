/** The headers of a delivery (contract, Signature and Delivery), apart from what signs: the documents name them too. */

/** The header that carries the signature. */
export const signatureHeaderName = "Service-Signature"

/** The header that carries the delivery's id: the same on every attempt, and another one than the event's. */
export const deliveryIdHeaderName = "Service-Delivery-ID"
