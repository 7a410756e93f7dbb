import { isIP } from "node:net"
import { HttpServerRequest } from "@effect/platform"
import { Effect, Option } from "effect"
import type { TrustedProxies } from "../settings/Forms.ts"

const unmapped = (address: string): string => address.replace(/^::ffff:(?=[\d.]+$)/i, "")

const isTrusted = (address: string, proxies: TrustedProxies): boolean => {
  const family = isIP(address)
  return family !== 0 && proxies.check(address, family === 6 ? "ipv6" : "ipv4")
}

export const isTrustedProxy = (address: string, proxies: TrustedProxies): boolean =>
  isTrusted(unmapped(address), proxies)

/** One entry of the header, without the port that some proxies add: `203.0.113.9:4711`, `[2001:db8::9]:4711`. */
const forwardedAddress = (entry: string): string => {
  const [, v6, v4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? []
  return unmapped(v6 ?? v4 ?? entry)
}

/**
 * The client's address: the connection's, or, behind trusted proxies, the last one in `X-Forwarded-For` that is not a
 * trusted proxy's. What an untrusted sender writes into that header is ignored.
 */
export const clientAddress = (
  proxies: TrustedProxies
): Effect.Effect<string, never, HttpServerRequest.HttpServerRequest> =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => addressOf(request, proxies))

export interface Sent {
  readonly remoteAddress: Option.Option<string>
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

/** The value of a header, by its name in lower case; undefined if it is absent or a list. */
export const headerOf = ({ headers }: Pick<Sent, "headers">, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

const connectionOf = ({ remoteAddress }: Sent): string => unmapped(Option.getOrElse(remoteAddress, () => "unknown"))

const addressOf = (request: Sent, proxies: TrustedProxies): string =>
  addressBehind(proxies, connectionOf(request), headerOf(request, "x-forwarded-for"))

/**
 * The client's address behind a connection.
 *
 * @param connection the address of the connection
 * @param header the request's `X-Forwarded-For`
 */
const addressBehind = (proxies: TrustedProxies, connection: string, header: string | undefined): string => {
  let address = unmapped(connection)
  const forwarded = (header ?? "").split(",").map((part) => forwardedAddress(part.trim()))
  while (isTrusted(address, proxies)) {
    const next = forwarded.pop()
    if (next === undefined || isIP(next) === 0) {
      break
    }
    address = next
  }
  return address
}

/** Whether a request comes from one of these addresses: the client's, or that of the proxy that connected for it. */
export const comesFrom = (request: Sent, addresses: TrustedProxies, proxies: TrustedProxies): boolean =>
  isTrusted(connectionOf(request), addresses) || isTrusted(addressOf(request, proxies), addresses)

/**
 * The key by which limits count a client: its IPv4 address, or the /64 network of its IPv6 address. A subscriber
 * usually has the whole /64, and could use a new address for every request.
 */
export const clientNetwork = (
  proxies: TrustedProxies
): Effect.Effect<string, never, HttpServerRequest.HttpServerRequest> => Effect.map(clientAddress(proxies), networkOf)

export const networkOfSender = (request: Sent, proxies: TrustedProxies): string =>
  networkOf(addressOf(request, proxies))

export const networkOf = (mapped: string): string => {
  const address = unmapped(mapped)
  if (isIP(address) !== 6) {
    return address
  }
  const [head = "", tail] = (address.split("%", 1)[0] ?? "").split("::")
  const parts = (text: string) => text.split(":").filter((part) => part !== "")
  const known = parts(head)
  // The zeros that `::` stands for; an IPv4 address at the end takes two groups
  const trailing = tail === undefined ? [] : parts(tail)
  const places = trailing.length + (trailing.at(-1)?.includes(".") === true ? 1 : 0)
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - known.length - places }, () => "0")
  const network = [...known, ...zeros, ...trailing].slice(0, 4).map((part) => Number.parseInt(part, 16).toString(16))
  return `${network.join(":")}::/64`
}
