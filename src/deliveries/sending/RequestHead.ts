/** Builds the head of a request, as text. Refuses anything that could change where it, or the body, ends. */
import { TransportBug } from "./TransportError.ts"

const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const headerValue = /^[\t\x20-\x7e]*$/
const requestTarget = /^\/[\x21-\x7e]*$/

/** The headers that determine where a request ends and what happens to the connection: set here and nowhere else. */
const ownHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

/**
 * The common beginning of all POSTs to a destination. Throws a `TransportBug` if the host or path can't be part of a
 * request.
 */
export const startOfHead = ({ host, pathname }: URL): string => {
  if (!requestTarget.test(pathname) || !headerValue.test(host)) {
    throw new TransportBug({ cause: "a destination that can't be put into a request" })
  }
  return `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
}

/** Cache of names that were found valid; the service sends only a few. */
const goodNames = new Set<string>()

const isGoodName = (name: string): boolean => {
  if (goodNames.has(name)) return true
  const good = headerName.test(name) && !ownHeaders.has(name.toLowerCase())
  if (good && goodNames.size < 100) goodNames.add(name)
  return good
}

/** The whole head. Throws a `TransportBug` if a header is impossible, such as one with a line break in it. */
export const requestHead = (
  start: string,
  headers: Readonly<Record<string, string>>,
  contentLength: number
): string => {
  let head = start
  for (const name in headers) {
    const value = headers[name] ?? ""
    if (!isGoodName(name) || !headerValue.test(value))
      throw new TransportBug({ cause: `an impossible header: ${name}` })
    head += `${name}: ${value}\r\n`
  }
  return `${head}content-length: ${contentLength}\r\n\r\n`
}
