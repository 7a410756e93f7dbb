/**
 * The result of one attempt to deliver an event: the transport creates it, the queue stores it and the history shows
 * it. The only parts of the consumer's answer in it are its status and, from a closed list, its reason to refuse
 * (contract 9.8).
 */
import { type Duration, Schema } from "effect"
import { refusedReasons } from "../../events/DeliveryHeaders.ts"

/**
 * Why an attempt did not end in HTTP 2xx (contract 9.8).
 *
 * - `timeout`: no complete exchange within the attempt's timeout.
 * - `connection_refused`, `connection_reset`, `dns_failure`, `tls_failure`: the point at which the exchange broke.
 * - `network_error`: any other failure below the HTTP level.
 * - `destination_blocked`: the address is not one that the service may send to; nothing was sent.
 * - `redirect_refused`: HTTP 3xx; redirects are never followed.
 * - `http_error`: any other HTTP status outside 2xx; the status itself is in `httpStatus`.
 * - `response_too_large`: the answer's head passed the size limit, so its status cannot be relied on. A 2xx whose
 *   *body* is too long is a success: the rest of the body is simply not read.
 * - `interrupted`: the worker died during the attempt; whether the consumer received the event is unknown.
 * - `endpoint_deleted`: the endpoint was deleted while the delivery waited; no further attempt is made. Only in a
 *   delivery's `lastErrorCode`, never in an attempt.
 * - `consumer_refused_…`: HTTP 4xx with a header in which the consumer's kit says why it refused; see `refusedCode`.
 *   The status decides as it does for `http_error`.
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
  "endpoint_deleted",
  "consumer_refused_signature",
  "consumer_refused_time",
  "consumer_refused_version",
  "consumer_refused_organization",
  "consumer_refused_environment"
).annotations({
  identifier: "AttemptErrorCode",
  description: "Why a delivery attempt did not succeed"
})

/** See the schema of the same name. */
export type AttemptErrorCode = typeof AttemptErrorCode.Type

/** The codes whose HTTP status alone decides whether the delivery is retried. */
export type StatusErrorCode = Extract<AttemptErrorCode, "http_error" | `consumer_refused_${string}`>

const refusedCodes: ReadonlyMap<unknown, StatusErrorCode> = new Map(
  refusedReasons.map((reason) => [reason, `consumer_refused_${reason}` as const])
)

/** The code for the value that a consumer sent in `refusedHeaderName`. Any other value has no code and is not kept. */
export const refusedCode = (header: unknown): StatusErrorCode | undefined => refusedCodes.get(header)

/** Whether the HTTP status, rather than the code, decides on a retry. */
export const isStatusErrorCode = (code: AttemptErrorCode): code is StatusErrorCode =>
  code === "http_error" || code.startsWith("consumer_refused_")

/** The outcome of one delivery attempt (contract 9.8). */
export interface AttemptOutcome {
  /** The consumer's HTTP status, or `null` if there was no answer. */
  readonly httpStatus: number | null
  /** `null` exactly when the consumer answered 2xx. */
  readonly errorCode: AttemptErrorCode | null
  /** From the start of the attempt to its end, in whole milliseconds; never negative. */
  readonly durationMs: number
  /** The consumer's `Retry-After` with a 429 or 503, otherwise `null`; see `parseRetryAfter`. */
  readonly retryAfter: Duration.Duration | null
}
