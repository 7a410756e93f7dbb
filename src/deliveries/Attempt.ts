/**
 * What one attempt to deliver an event came to: the value that the transport makes, the queue stores and the history
 * shows. It holds no part of the consumer's answer but its status (contract, Delivery).
 */
import { type Duration, Schema } from "effect"

/**
 * Why an attempt did not end in HTTP 2xx (contract, Delivery: "sanitized error codes of attempts").
 *
 * - `timeout`: no complete exchange within the attempt's time-out.
 * - `connection_refused`, `connection_reset`, `dns_failure`, `tls_failure`: where the exchange broke.
 * - `network_error`: any other failure below HTTP.
 * - `destination_blocked`: the address is not one that the service may send to; nothing was sent.
 * - `redirect_refused`: HTTP 3xx; redirects are never followed.
 * - `http_error`: any other HTTP status outside 2xx; the status itself is in `httpStatus`.
 * - `response_too_large`: the answer's head passed the size limit, so that its status cannot be relied on. A 2xx whose
 *   *body* is too long is a success: the rest of the body is simply not read.
 * - `interrupted`: the worker died during the attempt; whether the consumer received the event is unknown.
 * - `endpoint_deleted`: the endpoint was deleted while the delivery waited; no attempt is made any more. In a delivery's
 *   `lastErrorCode` only, never an attempt's own.
 */
export const AttemptErrorCode = Schema.Literal(
  "timeout",
  "connection_refused",
  "connection_reset",
  "dns_failure",
  "tls_failure",
  "destination_blocked",
  "redirect_refused",
  "http_error",
  "response_too_large",
  "network_error",
  "interrupted",
  "endpoint_deleted"
).annotations({
  identifier: "AttemptErrorCode",
  description: "Why a delivery attempt did not succeed"
})

/** See the schema of the same name. */
export type AttemptErrorCode = typeof AttemptErrorCode.Type

/** The outcome of one delivery attempt (contract, Delivery, retries, retention). */
export interface AttemptOutcome {
  /** The consumer's HTTP status, or `null` where no answer arrived. */
  readonly httpStatus: number | null
  /** `null` exactly when the consumer answered 2xx. */
  readonly errorCode: AttemptErrorCode | null
  /** From the start of the attempt to its end, in whole milliseconds, never negative. */
  readonly durationMs: number
  /** What the consumer asked for in `Retry-After` with a 429 or 503, else `null`; see `parseRetryAfter`. */
  readonly retryAfter: Duration.Duration | null
}
