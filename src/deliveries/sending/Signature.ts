/** The service's side of the signature that consumers verify (contract 8). */
import { createHmac } from "node:crypto"
import { type Array as Arr, Redacted } from "effect"

export { signatureHeaderName } from "../../events/DeliveryHeaders.ts"

/** What is signed, and with what secrets. */
export interface SignatureInput {
  /** Time of the attempt, in whole Unix seconds. */
  readonly timestamp: number
  /** The body exactly as it is sent; a string stands for its UTF-8 bytes. */
  readonly body: string | Uint8Array
  /** The secrets bound to the delivery, newest first: one, or two within 24 hours of a rotation. */
  readonly secrets: Arr.NonEmptyReadonlyArray<Redacted.Redacted<string>>
}

/**
 * The value of the `Service-Signature` header: `t=<Unix seconds>,v1=<hex>`, with one `v1` per secret in their order.
 * Each is HMAC-SHA256 over the bytes of `<t>.<body>`, keyed by the bytes of the full secret, including its prefix.
 *
 * Throws a `RangeError` if the timestamp is not a whole, non-negative number: no consumer could verify such a header.
 */
export const signatureHeader = ({ body, secrets, timestamp }: SignatureInput): string => {
  if (!Number.isSafeInteger(timestamp) || timestamp < 0) throw new RangeError("timestamp must be whole Unix seconds")
  const start = `${timestamp}.`
  let header = `t=${timestamp}`
  for (const secret of secrets) {
    header += `,v1=${createHmac("sha256", Redacted.value(secret)).update(start).update(body).digest("hex")}`
  }
  return header
}
