import { createHmac, timingSafeEqual } from "node:crypto"
import type { WebhookEvent } from "./Events.ts"

const messages = {
  missing_header: "The request has no Service-Signature header",
  malformed_header: "The Service-Signature header is malformed",
  signature_mismatch: "No signature matches the body under the given secrets",
  timestamp_out_of_tolerance: "The signature's timestamp is too far from the current time",
  malformed_body: "The signed body is not an event",
  unsupported_version: "The event's version is not supported",
  wrong_organization: "The event belongs to another organization",
  wrong_environment: "The event belongs to the other environment",
  body_too_large: "The request's body is larger than the limit"
}

/**
 * Why a delivery was refused.
 *
 * - `missing_header`: there is no `Service-Signature`.
 * - `malformed_header`: it is not `t=<Unix seconds>` with at least one `v1=`.
 * - `signature_mismatch`: no `v1` matches any of the secrets: the body is not from the service, was altered, or was
 *   parsed and serialized again.
 * - `timestamp_out_of_tolerance`: genuine, but signed too long ago, or by a clock too far ahead.
 * - `malformed_body`: genuine, but not an event: not UTF-8, not JSON, or not an envelope.
 * - `unsupported_version`: an envelope of a version that this kit does not know.
 * - `wrong_organization`, `wrong_environment`: not the expected one.
 * - `body_too_large`: more bytes than the adapter's limit; nothing was verified.
 */
export type WebhookVerificationReason = keyof typeof messages

/** A delivery that must be rejected. Respond with a 4xx; the message contains nothing from the request. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError"
  readonly reason: WebhookVerificationReason

  constructor(reason: WebhookVerificationReason, options?: ErrorOptions) {
    super(messages[reason], options)
    this.reason = reason
  }
}

/** The values that a delivery is checked against. */
export interface WebhookExpectations {
  /** The endpoint's full signing secret, or several, e.g. during a rotation. */
  readonly secret: string | ReadonlyArray<string>
  /**
   * The largest difference between the signature's time and now, in whole seconds, in either direction. Default 300, as
   * in the contract.
   */
  readonly toleranceSeconds?: number
  /** If set, events of other organizations are refused. */
  readonly organizationId?: string
  /** If set, events of the other environment are refused: `true` expects production, `false` the sandbox. */
  readonly livemode?: boolean
}

/** A delivery to verify, and the values to check it against. */
export interface VerifyWebhookOptions extends WebhookExpectations {
  /**
   * The request's body exactly as it arrived: if it is parsed and serialized again, the signature no longer matches.
   */
  readonly body: string | Uint8Array | ArrayBuffer
  /** The value of `Service-Signature`. */
  readonly header: string | null | undefined
  /** The current time, for tests. Default: the system's clock. */
  readonly now?: Date
}

interface ParsedHeader {
  /** Unparsed: exactly these characters were signed. */
  readonly timestamp: string
  readonly signatures: ReadonlyArray<string>
}

/**
 * Ignores parts with unknown labels, reserved for future schemes. Refuses a second `t`: it would be unclear which one
 * was signed.
 */
const parseHeader = (header: string): ParsedHeader => {
  const timestamps: Array<string> = []
  const signatures: Array<string> = []
  for (const part of header.split(",")) {
    if (part.startsWith("t=")) timestamps.push(part.slice(2))
    if (part.startsWith("v1=")) signatures.push(part.slice(3))
  }
  const [timestamp, ...others] = timestamps
  if (timestamp === undefined || others.length > 0 || !/^\d{1,12}$/.test(timestamp) || signatures.length === 0) {
    throw new WebhookVerificationError("malformed_header")
  }
  return { timestamp, signatures }
}

/**
 * Recognizes buffers by their tags, not by `instanceof`: test runners give modules an `ArrayBuffer` of another realm.
 */
export const bytesOf = (body: VerifyWebhookOptions["body"]): Uint8Array => {
  if (typeof body === "string") return new TextEncoder().encode(body)
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body)
  throw new TypeError("verifyWebhook needs the raw body: text or bytes, not the result of a JSON parser")
}

/** Patterns that no signing secret contains, each with its likely origin. */
const faults: ReadonlyArray<readonly [pattern: RegExp, fault: string]> = [
  [/[\r\n]/, "has a line break in it, as at the end of a file"],
  [/\s/, "has a space in it"],
  [/["'`]/, "has quotes in it, which belong to the file that it was copied from"],
  [/[^\x21-\x7e]/, "has a character in it that no secret has"],
  // The base64 of `whsec_`
  [/^whsec_d2hzZWNf/, "is the one for libraries of Standard Webhooks; the kit takes the endpoint's `signingSecret`"]
]

/**
 * Throws a `TypeError` if a signing secret can't be valid or is empty, without repeating it. Anybody can sign with an
 * empty one, so a missing setting must not accept forgeries.
 */
const checkSecret = (secret: string): void => {
  if (typeof secret !== "string" || secret === "") throw new TypeError("A signing secret must not be empty")
  const [, fault] = faults.find(([pattern]) => pattern.test(secret)) ?? []
  if (fault !== undefined) throw new TypeError(`The webhook's signing secret ${fault}`)
}

/**
 * Returns the secrets as a list. Throws a `TypeError` if there is none, or one can't be valid: this must surface before
 * the first delivery, since each one would be refused permanently.
 */
export const secretsOf = (secret: WebhookExpectations["secret"]): ReadonlyArray<string> => {
  const secrets = typeof secret === "string" ? [secret] : secret
  if (secrets.length === 0) throw new TypeError("A webhook needs at least one signing secret")
  for (const candidate of secrets) checkSecret(candidate)
  return secrets
}

/** Whether any `v1` matches any secret. Compares every pair in constant time, so that the duration reveals nothing. */
const matches = ({ signatures, timestamp }: ParsedHeader, body: Uint8Array, secrets: ReadonlyArray<string>) => {
  const candidates = signatures.map((signature) => Buffer.from(signature))
  let matched = false
  for (const secret of secrets) {
    const expected = Buffer.from(createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex"))
    for (const candidate of candidates) {
      if (candidate.length === expected.length && timingSafeEqual(candidate, expected)) matched = true
    }
  }
  return matched
}

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parseJson = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body))
  } catch (cause) {
    throw new WebhookVerificationError("malformed_body", { cause })
  }
}

/**
 * Checks every field of an envelope except `data`, which is trusted to match its type: the signature vouches for it.
 */
const isEnvelope = (value: { readonly [key: string]: unknown }): boolean =>
  typeof value["id"] === "string" &&
  typeof value["type"] === "string" &&
  typeof value["created_at"] === "string" &&
  typeof value["livemode"] === "boolean" &&
  typeof value["organization_id"] === "string" &&
  isObject(value["source"]) &&
  typeof value["source"]["provider"] === "string" &&
  typeof value["source"]["event_id"] === "string" &&
  isObject(value["data"]) &&
  (value["test"] === undefined || value["test"] === true)

const parseEvent = <Own>(body: Uint8Array): WebhookEvent<Own> => {
  const value = parseJson(body)
  if (!isObject(value) || typeof value["version"] !== "number") throw new WebhookVerificationError("malformed_body")
  if (value["version"] !== 1) throw new WebhookVerificationError("unsupported_version")
  if (!isEnvelope(value)) throw new WebhookVerificationError("malformed_body")
  // The boundary at which signed JSON becomes a typed event: the signer guarantees the shape of `data` for each type
  return value as unknown as WebhookEvent<Own>
}

/**
 * Verifies a delivery and returns its event (contract 8). Parses the body only after verifying its signature; tries
 * every `v1` in the header, as secret rotation requires.
 *
 * A verified event may still be a test or a repeat: check `test`, deduplicate by `id`, and compare the payment with
 * your own order, its amount and currency before any effect. A type that this kit does not know is not an error: see
 * `UnknownWebhookEvent`.
 *
 * Throws a `WebhookVerificationError` if the delivery must be refused, and a `TypeError` if the call itself is wrong:
 * no secret, an invalid one (empty, with spaces, line breaks or quotes), or a body that was already parsed.
 */
export const verifyWebhook = <Own>(options: VerifyWebhookOptions): WebhookEvent<Own> => {
  const { header, livemode, now = new Date(), organizationId, toleranceSeconds = 300 } = options
  const secrets = secretsOf(options.secret)
  if (header === null || header === undefined || header === "") throw new WebhookVerificationError("missing_header")
  const parsed = parseHeader(header)
  const body = bytesOf(options.body)
  if (!matches(parsed, body, secrets)) throw new WebhookVerificationError("signature_mismatch")
  const difference = Math.abs(Math.floor(now.getTime() / 1000) - Number(parsed.timestamp))
  // Written so that a tolerance or a time that is not a number is refused
  if (!(difference <= toleranceSeconds)) throw new WebhookVerificationError("timestamp_out_of_tolerance")
  const event = parseEvent<Own>(body)
  if (organizationId !== undefined && event.organization_id.toLowerCase() !== organizationId.toLowerCase()) {
    throw new WebhookVerificationError("wrong_organization")
  }
  if (livemode !== undefined && event.livemode !== livemode) throw new WebhookVerificationError("wrong_environment")
  return event
}

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
