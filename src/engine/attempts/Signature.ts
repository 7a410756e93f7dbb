/** Creates the signatures that consumers verify (contract 8): the service's own form, and that of Standard Webhooks. */
import { type Array as Arr, Redacted } from "effect"
import {
  signatureHeaderName,
  webhookIdHeaderName,
  webhookSignatureHeaderName,
  webhookTimestampHeaderName
} from "../../events/DeliveryHeaders.ts"
import { HmacKey, HmacSha256 } from "../../platform/kit/HmacSha256.ts"

/** The input of `signatureHeaders`. */
export interface SignatureInput {
  /** The id of the event in the body, the same in each attempt. */
  readonly eventId: string
  /** Time of the attempt, in whole Unix seconds. */
  readonly timestamp: number
  /** The body exactly as it is sent; a string stands for its UTF-8 bytes. */
  readonly body: string | Uint8Array
  /** The secrets bound to the delivery, newest first: one, or two within 24 hours of a rotation. */
  readonly secrets: Arr.NonEmptyReadonlyArray<Redacted.Redacted<string>>
}

/** The headers by which a consumer verifies a delivery. */
export interface SignatureHeaders extends Readonly<Record<string, string>> {
  /** `t=<Unix seconds>,v1=<hex>`, with one `v1` for each secret in their order. */
  readonly [signatureHeaderName]: string
  readonly [webhookIdHeaderName]: string
  readonly [webhookTimestampHeaderName]: string
  /** `v1,<base64>` for each secret in their order, separated by spaces. */
  readonly [webhookSignatureHeaderName]: string
}

const hmac = new HmacSha256()

/** Prepared keys, cached for as long as the secrets themselves are held. */
const keys = new WeakMap<Redacted.Redacted, HmacKey>()

const keyOf = (secret: Redacted.Redacted): HmacKey => {
  let key = keys.get(secret)
  if (key === undefined) {
    key = new HmacKey(Redacted.value(secret))
    keys.set(secret, key)
  }
  return key
}

/**
 * Signs a delivery in both forms. Each signature is HMAC-SHA256, keyed by the bytes of the full secret, including its
 * prefix: over `<t>.<body>` in `Service-Signature`, and over `<event id>.<t>.<body>` in `webhook-signature`. The two
 * can't be confused: an event's id is not a time, and no body begins with digits and a dot.
 *
 * Throws a `RangeError` if the timestamp is not a whole, non-negative number: no consumer could verify such headers.
 */
export const signatureHeaders = ({ body, eventId, secrets, timestamp }: SignatureInput): SignatureHeaders => {
  if (!Number.isSafeInteger(timestamp) || timestamp < 0) throw new RangeError("timestamp must be whole Unix seconds")
  const start = `${timestamp}.`
  const standardStart = `${eventId}.${start}`
  let own = `t=${timestamp}`
  let standard = ""
  hmac.setBody(body)
  for (const secret of secrets) {
    const key = keyOf(secret)
    own += `,v1=${hmac.sign(key, start, "hex")}`
    if (standard !== "") standard += " "
    standard += `v1,${hmac.sign(key, standardStart, "base64")}`
  }
  return {
    [signatureHeaderName]: own,
    [webhookIdHeaderName]: eventId,
    [webhookTimestampHeaderName]: String(timestamp),
    [webhookSignatureHeaderName]: standard
  }
}
