import { BlockList } from "node:net"
import { HttpServerRequest } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck } from "effect"
import { clientAddress } from "../../src/kit/ClientAddress.ts"

/** Proxies in 10.0.0.0/8 and fd00::/8, as an operator would name them. */
const proxies = new BlockList()
proxies.addSubnet("10.0.0.0", 8, "ipv4")
proxies.addSubnet("fd00::", 8, "ipv6")

const none = new BlockList()

const addressOf = (remote: string, forwarded?: string, trusted = proxies) => {
  const request = HttpServerRequest.fromWeb(
    new Request("http://localhost/", forwarded === undefined ? {} : { headers: { "x-forwarded-for": forwarded } })
  ).modify({ remoteAddress: remote })
  return Effect.runSync(
    clientAddress(trusted).pipe(Effect.provideService(HttpServerRequest.HttpServerRequest, request))
  )
}

const proxyAddress = FastCheck.oneof(
  FastCheck.ipV4().map((address) => `10.${address.split(".").slice(1).join(".")}`),
  FastCheck.nat(0xffff).map((part) => `fd12::${part.toString(16)}`)
)
const clientOf = FastCheck.ipV4().filter((address) => !address.startsWith("10."))
const anything = FastCheck.oneof(
  FastCheck.ipV4(),
  FastCheck.constantFrom("unknown", "", "127.0.0.1:80", "_hidden", "'; DROP TABLE", "999.1.1.1", "::1", "-")
)

describe("a client's address", () => {
  it("is the connection's where no proxy is trusted, whatever the header says", () => {
    FastCheck.assert(
      FastCheck.property(clientOf, FastCheck.array(anything), (remote, forwarded) => {
        expect(addressOf(remote, forwarded.join(", "), none)).toBe(remote)
        expect(addressOf(remote, forwarded.join(", "), proxies)).toBe(remote)
      })
    )
  })

  it("behind trusted proxies is what the outermost of them saw, whatever the client wrote before it", () => {
    FastCheck.assert(
      FastCheck.property(
        clientOf,
        FastCheck.array(anything, { maxLength: 5 }),
        FastCheck.array(proxyAddress, { minLength: 1, maxLength: 4 }),
        (client, spoofed, [last = "10.0.0.1", ...others]) => {
          expect(addressOf(last, [...spoofed, client, ...others].join(", "))).toBe(client)
          expect(addressOf(last, [...spoofed, client, ...others].join(","))).toBe(client)
        }
      )
    )
  })

  it("stops at what is no address: a proxy that does not say who called is itself the client", () => {
    for (const header of [undefined, "", "unknown", "203.0.113.9, unknown", "203.0.113.9, 198.51.100.1:4711", ", "]) {
      expect(addressOf("10.0.0.1", header), header).toBe("10.0.0.1")
    }
    expect(addressOf("10.0.0.1", "203.0.113.9, nonsense, 10.0.0.2")).toBe("10.0.0.2")
  })

  it("is the outermost proxy where only proxies are named", () => {
    expect(addressOf("10.0.0.1", "10.0.0.3, 10.0.0.2")).toBe("10.0.0.3")
  })

  it("is the same for IPv4 and its form mapped into IPv6", () => {
    expect(addressOf("::ffff:203.0.113.9", undefined, none)).toBe("203.0.113.9")
    expect(addressOf("::ffff:10.0.0.1", "::ffff:203.0.113.9")).toBe("203.0.113.9")
    expect(addressOf("::FFFF:10.0.0.1", "::FFFF:203.0.113.9")).toBe("203.0.113.9")
  })

  it("may be an IPv6 address", () => {
    expect(addressOf("fd00::1", "2001:db8::9")).toBe("2001:db8::9")
    expect(addressOf("2001:db8::9", "203.0.113.9")).toBe("2001:db8::9")
  })
})
