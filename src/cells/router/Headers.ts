import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import { isTrustedProxy } from "../../kit/ClientAddress.ts"
import type { TrustedProxies } from "../../settings/Forms.ts"

/** Headers on their way through a router. */

/** Headers of one connection, which are not passed on (RFC 9110, 7.6.1). */
const ofOneConnection: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings"
])

/**
 * Headers that the router sets itself, or answers itself, or that name the client or the host in a way that cells do
 * not read: a client must not be able to send them on.
 */
const ownHeaders: ReadonlySet<string> = new Set([
  "expect",
  "forwarded",
  "host",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-real-ip"
])

/** The headers that a message itself declares to be of its connection alone. */
const declaredIn = (connection: string | ReadonlyArray<string> | undefined): ReadonlySet<string> =>
  new Set(
    [connection ?? []]
      .flat()
      .flatMap((value) => value.split(","))
      .map((name) => name.trim().toLowerCase())
  )

/** The clients' addresses, as cells are told them: what an untrusted sender writes into the header is dropped. */
const forwardedFor = ({ headers, socket }: IncomingMessage, proxies: TrustedProxies): string => {
  const address = socket.remoteAddress ?? "unknown"
  const before = headers["x-forwarded-for"]
  return before !== undefined && isTrustedProxy(address, proxies)
    ? `${[before].flat().join(", ")}, ${address}`
    : address
}

/** What names the client's trace. */
const ofTrace: ReadonlySet<string> = new Set(["traceparent", "tracestate"])

/**
 * The headers of a request to a cell, as names and values in turn; as they came, in their order, but for those of the
 * connection and those that the router sets.
 *
 * @param traceparent the router's own, in place of the client's; null if there is none
 */
export const requestHeaders = (
  request: IncomingMessage,
  proxies: TrustedProxies,
  traceparent: string | null
): Array<string> => {
  const { headers, rawHeaders } = request
  const declared = headers.connection === undefined ? undefined : declaredIn(headers.connection)
  const passed: Array<string> = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ""
    const lower = name.toLowerCase()
    // A length is the router's own to declare, since it is what bounds the body
    if (ofOneConnection.has(lower) || ownHeaders.has(lower) || lower === "content-length") continue
    if (declared?.has(lower) === true || (traceparent !== null && ofTrace.has(lower))) continue
    passed.push(name, rawHeaders[index + 1] ?? "")
  }
  passed.push("x-forwarded-for", forwardedFor(request, proxies))
  if (traceparent !== null) passed.push("traceparent", traceparent)
  return passed
}

/** The headers of a cell's answer to its client. */
export const responseHeaders = (headers: IncomingHttpHeaders): Record<string, string | Array<string>> => {
  const declared = declaredIn(headers.connection)
  const passed: Record<string, string | Array<string>> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !ofOneConnection.has(name) && !declared.has(name)) passed[name] = value
  }
  return passed
}
