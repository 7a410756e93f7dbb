import { isIP } from "node:net"
import { HttpServerRequest } from "@effect/platform"
import { Effect, Option } from "effect"
import type { TrustedProxies } from "../SettingsForms.ts"

const unmapped = (address: string): string => address.replace(/^::ffff:(?=[\d.]+$)/i, "")

const isTrusted = (address: string, proxies: TrustedProxies): boolean => {
  const family = isIP(address)
  return family !== 0 && proxies.check(address, family === 6 ? "ipv6" : "ipv4")
}

/**
 * The client's address: the connection's, or, behind trusted proxies, the last one in `X-Forwarded-For` that is not a
 * trusted proxy's. What an untrusted sender writes into that header counts for nothing.
 */
export const clientAddress = (
  proxies: TrustedProxies
): Effect.Effect<string, never, HttpServerRequest.HttpServerRequest> =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    let address = unmapped(Option.getOrElse(request.remoteAddress, () => "unknown"))
    const forwarded = (request.headers["x-forwarded-for"] ?? "").split(",").map((part) => unmapped(part.trim()))
    while (isTrusted(address, proxies)) {
      const next = forwarded.pop()
      if (next === undefined || isIP(next) === 0) {
        break
      }
      address = next
    }
    return address
  })
