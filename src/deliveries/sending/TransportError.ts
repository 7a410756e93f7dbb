/**
 * Maps network errors to the sanitized codes that the history shows (contract 9.8). The codes tell integrators what
 * they can act on, and nothing about the inside of our network.
 */
import { Data } from "effect"
import { errorCode } from "../../errors/ErrorCode.ts"
import type { AttemptErrorCode } from "../Attempt.ts"

/** No connection was made, and nothing was sent. */
export class ConnectError extends Data.TaggedError("ConnectError")<{
  readonly errorCode: AttemptErrorCode
  readonly cause: unknown
}> {}

/** The bytes received are not an HTTP answer to the request. */
export class UnreadableAnswer extends Data.TaggedError("UnreadableAnswer")<{ readonly cause: string }> {}

const codes: Readonly<Record<string, AttemptErrorCode>> = {
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  ECONNABORTED: "connection_reset",
  EPIPE: "connection_reset",
  ENOTFOUND: "dns_failure",
  EAI_AGAIN: "dns_failure",
  ETIMEDOUT: "timeout",
  EPROTO: "tls_failure",
  HPE_HEADER_OVERFLOW: "response_too_large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "response_too_large"
}

const tlsCode = /^(ERR_SSL_|ERR_TLS_)/

/** The code for an error of an exchange, from Node's sockets, its HTTP client or TLS. */
export const attemptErrorCode = (error: unknown): AttemptErrorCode => {
  if (error instanceof ConnectError) return error.errorCode
  const code = errorCode(error)
  if (code === undefined) return "network_error"
  return codes[code] ?? (tlsCode.test(code) ? "tls_failure" : "network_error")
}

/** The code for the errors of all addresses that were tried: the first specific one. */
export const connectErrorCode = (errors: ReadonlyArray<unknown>): AttemptErrorCode =>
  errors.map(attemptErrorCode).find((code) => code !== "network_error") ?? "network_error"

/** Once TCP is connected, any error that is neither a reset nor a timeout is a refused certificate or protocol. */
export const handshakeErrorCode = (error: unknown): AttemptErrorCode => {
  const code = attemptErrorCode(error)
  return code === "network_error" ? "tls_failure" : code
}

/** A fault of the service itself, before the network: a defect, not the outcome of an attempt. */
export class TransportBug extends Data.TaggedError("TransportBug")<{ readonly cause: unknown }> {}
