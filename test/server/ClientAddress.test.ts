import { BlockList } from "node:net"
import { HttpServerRequest } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck } from "effect"
import { clientAddress, clientNetwork } from "../../src/server/Connections.ts"

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
    for (const header of [undefined, "", "unknown", "203.0.113.9, unknown", "203.0.113.9, [198.51.100.1", ", "]) {
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

  it("may come with the port that some proxies add", () => {
    expect(addressOf("10.0.0.1", "203.0.113.9, 198.51.100.1:4711")).toBe("198.51.100.1")
    expect(addressOf("10.0.0.1", "198.51.100.1:4711, 10.0.0.2:80")).toBe("198.51.100.1")
    expect(addressOf("10.0.0.1", "[2001:db8::9]:4711")).toBe("2001:db8::9")
    expect(addressOf("10.0.0.1", "[2001:db8::9]")).toBe("2001:db8::9")
    expect(addressOf("10.0.0.1", "[::ffff:203.0.113.9]:1")).toBe("203.0.113.9")
    for (const header of [
      "198.51.100.1:",
      "198.51.100.1:x",
      "198.51.100.1:123456",
      "[2001:db8::9]x",
      "2001:db8::9:80:x"
    ]) {
      expect(addressOf("10.0.0.1", header), header).toBe("10.0.0.1")
    }
  })

  it("may be an IPv6 address", () => {
    expect(addressOf("fd00::1", "2001:db8::9")).toBe("2001:db8::9")
    expect(addressOf("2001:db8::9", "203.0.113.9")).toBe("2001:db8::9")
  })
})

describe("what a limit counts a client by", () => {
  const networkOf = (remote: string) =>
    Effect.runSync(
      clientNetwork(none).pipe(
        Effect.provideService(
          HttpServerRequest.HttpServerRequest,
          HttpServerRequest.fromWeb(new Request("http://localhost/")).modify({ remoteAddress: remote })
        )
      )
    )

  it("is an IPv4 address as it is, written as IPv6 too", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.ipV4(), (address) => {
        expect(networkOf(address)).toBe(address)
        expect(networkOf(`::ffff:${address}`)).toBe(address)
      })
    )
  })

  it("is the /64 network of an IPv6 address, however that is written", () => {
    for (const [address, network] of [
      ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
      ["2001:DB8:0001:2::1", "2001:db8:1:2::/64"],
      ["2001:db8:1:2::", "2001:db8:1:2::/64"],
      ["2001:db8::9", "2001:db8:0:0::/64"],
      ["::1", "0:0:0:0::/64"],
      ["fe80::1%eth0", "fe80:0:0:0::/64"],
      ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"]
    ] as const) {
      expect(networkOf(address), address).toBe(network)
    }
  })

  it("is one for every address of a network", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.array(FastCheck.nat(0xffff), { minLength: 4, maxLength: 4 }), (host) => {
        const address = `2001:db8:7:8:${host.map((part) => part.toString(16)).join(":")}`
        expect(networkOf(address)).toBe("2001:db8:7:8::/64")
      })
    )
  })
})
