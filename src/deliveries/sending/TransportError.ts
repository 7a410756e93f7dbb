/**
 * Maps what went wrong on the network to the sanitized code that the history shows (contract 9.8). The codes say what
 * the integrator can act on, and nothing about the inside of our network.
 */
import { Data } from "effect"
import { errorCode, hasErrorCode } from "../../errors/ErrorCode.ts"
import type { AttemptErrorCode } from "../Attempt.ts"

/** No connection was made, and nothing was sent. */
export class ConnectError extends Data.TaggedError("ConnectError")<{
  readonly errorCode: AttemptErrorCode
  readonly cause: unknown
}> {}

const codes: Readonly<Record<string, AttemptErrorCode>> = {
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  ECONNABORTED: "connection_reset",
  EPIPE: "connection_reset",
  // The other side closed in the middle of the body
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "connection_reset",
  ENOTFOUND: "dns_failure",
  EAI_AGAIN: "dns_failure",
  ETIMEDOUT: "timeout",
  EPROTO: "tls_failure",
  UND_ERR_HEADERS_OVERFLOW: "response_too_large",
  UND_ERR_CLOSED: "interrupted",
  UND_ERR_DESTROYED: "interrupted"
}

const tlsCode = /^(ERR_SSL_|ERR_TLS_)/

// undici gives a closed connection and an impossible answer (one that nobody asked for, an upgrade) the same code, and
// gives none at all to an answer that ends too early and to one that is not HTTP: there the message has to decide
const impossibleAnswers: ReadonlyArray<string> = ["bad response", "bad upgrade"]
const endedTooEarly = "(Invalid EOF state)"

/** The code for an error of an exchange, from undici, node's sockets or TLS. */
export const attemptErrorCode = (error: unknown): AttemptErrorCode => {
  if (error instanceof ConnectError) return error.errorCode
  const code = errorCode(error)
  const message = error instanceof Error ? error.message : ""
  if (code === undefined) return message.includes(endedTooEarly) ? "connection_reset" : "network_error"
  if (code === "UND_ERR_SOCKET") return impossibleAnswers.includes(message) ? "network_error" : "connection_reset"
  return codes[code] ?? (tlsCode.test(code) ? "tls_failure" : "network_error")
}

/**
 * The code for an error while connecting. If several addresses were tried, the most telling of their errors counts.
 * Once TCP is connected, anything that is neither a reset nor a time-out is a certificate or protocol that was refused.
 */
export const connectErrorCode = (error: unknown, handshaking: boolean): AttemptErrorCode => {
  if (handshaking) {
    const code = attemptErrorCode(error)
    return code === "network_error" ? "tls_failure" : code
  }
  const tried: ReadonlyArray<unknown> = error instanceof AggregateError ? error.errors : [error]
  return tried.map(attemptErrorCode).find((code) => code !== "network_error") ?? "network_error"
}

/** A fault of our own on the way to the network: not an outcome of an attempt, but a defect. */
export class TransportBug extends Data.TaggedError("TransportBug")<{ readonly cause: unknown }> {}

const refusedRequests: ReadonlyArray<string> = [
  "UND_ERR_INVALID_ARG",
  "UND_ERR_NOT_SUPPORTED",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"
]

/** Whether the error is a defect: a bug of ours, or a request (a header, say) that undici refused to send. */
export const isTransportBug = (error: unknown): boolean =>
  error instanceof TransportBug || hasErrorCode(error, ...refusedRequests)
