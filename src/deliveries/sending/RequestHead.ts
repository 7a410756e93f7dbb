/** The head of a request, as text. Whatever could change where it ends, or the body, is refused. */
import { TransportBug } from "./TransportError.ts"

const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const headerValue = /^[\t\x20-\x7e]*$/
const requestTarget = /^\/[\x21-\x7e]*$/

/** What says where a request ends and what becomes of the connection: set here and nowhere else. */
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

/** The part that all POSTs to a destination have in common. Dies if the URL could not have been parsed to this. */
export const startOfHead = ({ host, pathname }: URL): string => {
  if (!requestTarget.test(pathname) || !headerValue.test(host)) {
    throw new TransportBug({ cause: "a destination that can't be put into a request" })
  }
  return `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
}

/** Names that were found good; the service sends a handful. */
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
