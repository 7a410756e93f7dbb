import { BlockList } from "node:net"
import { Effect, Either, FastCheck as fc, Layer } from "effect"
import {
  addressPolicyFor,
  DnsResolver,
  isLoopbackAddress,
  loopbackToo,
  maxDestinationUrlLength,
  parseDestination,
  publicAddressesOnly,
  type ResolvedAddress,
  resolveDestination
} from "../../src/engine/transport/DestinationUrl.ts"
import { nameServer } from "../destinations/endpoints/DestinationNameServer.ts"
import { describe, expect, it, layer } from "../harness/Tests.ts"

const judge = (text: string, allowLocal: boolean): string =>
  Either.match(parseDestination(text, { allowLocal }), { onLeft: ({ reason }) => reason, onRight: ({ href }) => href })

const accepted: ReadonlyArray<readonly [text: string, normalised: string]> = [
  ["https://example.com/hook", "https://example.com/hook"],
  ["https://example.com", "https://example.com/"],
  ["https://example.com:443/hook", "https://example.com/hook"],
  ["HTTPS://Hooks.Example.COM/Path", "https://hooks.example.com/Path"],
  ["https://a-b.c_d.example.co.uk/a%20b/c", "https://a-b.c_d.example.co.uk/a%20b/c"],
  ["https://example.com/a%3Fb", "https://example.com/a%3Fb"],
  ["https://example.com/@someone", "https://example.com/@someone"],
  ["https://bücher.example/", "https://xn--bcher-kva.example/"],
  ["https://example.com/a/../b", "https://example.com/b"],
  ["https://localhost.example.com/", "https://localhost.example.com/"],
  ["https://8.8.8.8/hook", "https://8.8.8.8/hook"],
  ["https://134744072/hook", "https://8.8.8.8/hook"],
  ["https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]/"]
]

const refused: ReadonlyArray<readonly [reason: string, text: string]> = [
  ["malformed", ""],
  ["malformed", "example.com/hook"],
  ["malformed", "//example.com/hook"],
  ["malformed", "https://"],
  ["malformed", "https://exa mple.com/"],
  ["malformed", " https://example.com/"],
  ["malformed", "https://example.com/\n"],
  ["malformed", "https://exam\tple.com/"],
  ["malformed", "https://example.com/\u0000"],
  ["malformed", "https://example.com\\@evil.example/"],
  ["malformed", "https:\\\\example.com"],
  ["malformed", "https://example.com:99999/"],
  ["malformed", "https://256.1.1.1/"],
  ["malformed", "https://1.2.3.4.5/"],
  ["malformed", "https://[fe80::1%25eth0]/"],
  ["malformed", "https://[::1/"],
  ["too_long", `https://example.com/${"a".repeat(maxDestinationUrlLength)}`],
  ["too_long", `https://example.com/${"ü".repeat(500)}`],
  ["scheme", "http://example.com/"],
  ["scheme", "ftp://example.com/"],
  ["scheme", "ws://example.com/"],
  ["scheme", "file:///etc/passwd"],
  ["scheme", "javascript:alert(1)"],
  ["scheme", "data:text/plain,x"],
  ["port", "https://example.com:8443/"],
  ["port", "https://example.com:80/"],
  ["port", "https://example.com:0/"],
  ["credentials", "https://user@example.com/"],
  ["credentials", "https://user:hunter2@example.com/"],
  ["credentials", "https://:hunter2@example.com/"],
  ["credentials", "https://@example.com/"],
  ["query", "https://example.com/?a=1"],
  ["query", "https://example.com/?"],
  ["query", "https://example.com?"],
  ["fragment", "https://example.com/#a"],
  ["fragment", "https://example.com/#"],
  ["fragment", "https://example.com/#?a"],
  ["host", "https://localhost/"],
  ["host", "https://LOCALHOST/"],
  ["host", "https://app.localhost/"],
  ["host", "https://printer.local/"],
  ["host", "https://metadata.google.internal/"],
  ["host", "https://db.home.arpa/"],
  ["host", "https://intranet/"],
  ["host", "https://example.com./"],
  ["host", "https://localhost./"],
  ["host", "https://a..example.com/"],
  ["host", "https://.example.com/"],
  ["host", "https://ex!ample.com/"],
  ["host", `https://${"a".repeat(64)}.example.com/`],
  ["address", "https://127.0.0.1/"],
  ["address", "https://0/"],
  ["address", "https://10.0.0.1/"],
  ["address", "https://169.254.169.254/latest/meta-data"],
  ["address", "https://[::1]/"],
  ["address", "https://[::ffff:a9fe:a9fe]/"]
]

describe("a destination URL", () => {
  it.each(accepted)("is accepted and normalised: %s", (text, normalised) => {
    expect(judge(text, false)).toBe(normalised)
    expect(judge(text, true)).toBe(normalised)
    expect(judge(normalised, false)).toBe(normalised)
  })

  it.each(refused)("is refused for its %s: %j", (reason, text) => {
    expect(judge(text, false)).toBe(reason)
  })

  it("may have 2048 characters and not one more", () => {
    const longest = `https://example.com/${"a".repeat(maxDestinationUrlLength - "https://example.com/".length)}`
    expect(judge(longest, false)).toBe(longest)
    expect(judge(`${longest}a`, false)).toBe("too_long")
  })

  it("is refused with a message that does not repeat it", () => {
    for (const [, text] of refused) {
      const message = Either.match(parseDestination(text, { allowLocal: false }), {
        onLeft: (refusal) => refusal.message,
        onRight: () => ""
      })
      expect(message).toMatch(/^The destination/)
      expect(message).not.toContain("hunter2")
    }
  })

  it("once accepted is https, on port 443, without credentials, query and fragment, whatever the text", () => {
    const text = fc.oneof(
      fc.webUrl({
        withQueryParameters: true,
        withFragments: true,
        authoritySettings: { withPort: true, withUserInfo: true }
      }),
      fc.ipV4().map((address) => `https://${address}/`),
      fc.string()
    )
    fc.assert(
      fc.property(text, (given) => {
        const result = parseDestination(given, { allowLocal: false })
        if (Either.isLeft(result)) return
        // In a path, a colon and an at sign mean nothing
        expect(result.right.href).toMatch(/^https:\/\/[^/:@?#]+\/[^?#]*$/)
      })
    )
  })
})

describe("a destination URL in local development", () => {
  it.each([
    "http://localhost/hook",
    "http://localhost:3000/hook",
    "https://localhost:8443/",
    "http://127.0.0.1:3000/",
    "http://[::1]:3000/",
    "https://localhost/"
  ])("may be of this machine: %s", (text) => {
    expect(judge(text, true)).toBe(text)
    expect(judge(text, false)).not.toBe(text)
  })

  it.each<readonly [string, string]>([
    ["scheme", "http://example.com/"],
    ["scheme", "http://10.0.0.1/"],
    ["scheme", "http://localhost.example.com/"],
    ["scheme", "http://app.localhost:3000/"],
    ["scheme", "http://169.254.169.254/"],
    ["scheme", "ftp://localhost/"],
    ["port", "https://example.com:8443/"],
    ["port", "http://localhost:0/"],
    ["credentials", "http://user:hunter2@localhost:3000/"],
    ["query", "http://localhost:3000/?a=1"],
    ["fragment", "http://localhost:3000/#a"],
    ["host", "https://app.localhost/"],
    ["host", "https://localhost./"],
    ["address", "https://192.168.0.1/"],
    ["address", "https://[::ffff:10.0.0.1]/"]
  ])("is still refused for its %s: %s", (reason, text) => {
    expect(judge(text, true)).toBe(reason)
  })

  it("opens loopback to hosts of this machine alone", () => {
    expect(addressPolicyFor("localhost", { allowLocal: true })).toEqual(loopbackToo)
    expect(addressPolicyFor("[::1]", { allowLocal: true })).toEqual(loopbackToo)
    expect(addressPolicyFor("example.com", { allowLocal: true })).toEqual(publicAddressesOnly)
    expect(addressPolicyFor("localhost", { allowLocal: false })).toEqual(publicAddressesOnly)
  })
})

const answering = (...addresses: ReadonlyArray<string>) =>
  Layer.succeed(DnsResolver, {
    resolve: () =>
      Effect.succeed(addresses.map((address): ResolvedAddress => ({ address, family: address.includes(":") ? 6 : 4 })))
  })

const networks = new BlockList()
networks.addSubnet("172.16.0.0", 12, "ipv4")

describe("where private networks are open", () => {
  const inNetworks = (text: string, options: { readonly networks?: BlockList } = { networks }) =>
    Either.match(parseDestination(text, { allowLocal: false, ...options }), {
      onLeft: ({ reason }) => reason,
      onRight: ({ href }) => href
    })

  it.each([
    "http://receiver:9000/hook",
    "https://receiver/hook",
    "http://host.docker.internal:9000/",
    "http://172.17.0.1:9000/hook",
    "http://[::ffff:ac11:1]:9000/hook"
  ])("takes %s, and nowhere else", (text) => {
    expect(inNetworks(text)).toBe(text)
    expect(inNetworks(text, {})).toMatch(/^(scheme|host|port)$/)
    expect(inNetworks(text, { networks: new BlockList() })).toMatch(/^(scheme|host|port)$/)
  })

  it.each([
    ["scheme", "http://example.com/"],
    ["port", "https://example.com:8443/"],
    ["scheme", "http://10.0.0.1/"],
    ["address", "https://10.0.0.1/"],
    ["address", "https://169.254.169.254/latest/meta-data/"],
    ["address", "https://100.100.100.200/"],
    ["scheme", "http://localhost:9000/"],
    ["host", "https://localhost/"],
    ["scheme", "ftp://receiver/"],
    ["credentials", "http://user@receiver/"],
    ["query", "http://receiver/?a=b"],
    ["port", "http://receiver:0/"]
  ])("refuses for its %s: %s", (reason, text) => {
    expect(inNetworks(text)).toBe(reason)
  })

  it.effect.each(["169.254.169.254", "127.0.0.1", "10.0.0.1", "100.100.100.200", "8.8.8.8", "fd00:ec2::254"])(
    "refuses a private name that leads to %s",
    (address) =>
      Effect.gen(function* () {
        const policy = addressPolicyFor("receiver", { allowLocal: true, networks })
        expect(yield* Effect.flip(resolveDestination("receiver", policy))).toMatchObject({ reason: "address" })
      }).pipe(Effect.provide(answering("172.17.0.2", address)))
  )

  it.effect("refuses a public name that leads into them", () =>
    Effect.gen(function* () {
      const policy = addressPolicyFor("example.com", { allowLocal: true, networks })
      expect(yield* Effect.flip(resolveDestination("example.com", policy))).toMatchObject({ reason: "address" })
    }).pipe(Effect.provide(answering("172.17.0.2")))
  )
})

const resolverThatMustNotBeAsked = Layer.succeed(DnsResolver, {
  resolve: (hostname) => Effect.dieMessage(`asked for ${hostname}`)
})

describe("a destination's name", () => {
  it.effect("is refused as a whole for one address that is not public", () =>
    Effect.gen(function* () {
      const refusal = yield* Effect.flip(resolveDestination("example.com", publicAddressesOnly))
      expect(refusal).toMatchObject({ _tag: "DestinationRefusal", reason: "address" })
      expect(refusal.message).not.toContain("10.0.0.1")
    }).pipe(Effect.provide(answering("8.8.8.8", "10.0.0.1", "1.1.1.1")))
  )

  it.effect("may lead to loopback under the policy of local development only", () =>
    Effect.gen(function* () {
      expect(yield* resolveDestination("localhost", loopbackToo)).toHaveLength(1)
      expect(yield* Effect.flip(resolveDestination("localhost", publicAddressesOnly))).toMatchObject({
        reason: "address"
      })
    }).pipe(Effect.provide(answering("127.0.0.1")))
  )

  it.effect("is not looked up where it is an address", () =>
    Effect.gen(function* () {
      expect(yield* resolveDestination("8.8.8.8", publicAddressesOnly)).toEqual([{ address: "8.8.8.8", family: 4 }])
      expect(yield* resolveDestination("[2606:4700:4700::1111]", publicAddressesOnly)).toEqual([
        { address: "2606:4700:4700::1111", family: 6 }
      ])
      for (const hostname of ["127.0.0.1", "[::1]", "[::ffff:a00:1]"]) {
        const refusal = yield* Effect.flip(resolveDestination(hostname, publicAddressesOnly))
        expect(refusal).toMatchObject({ reason: "address" })
      }
    }).pipe(Effect.provide(resolverThatMustNotBeAsked))
  )
})

layer(DnsResolver.layer)("the system's resolver", (it) => {
  it.effect("resolves localhost to loopback", function* () {
    const addresses = yield* (yield* DnsResolver).resolve("localhost")
    expect(addresses.length).toBeGreaterThan(0)
    expect(addresses.every(({ address }) => isLoopbackAddress(address))).toBe(true)
  })
})

describe("a name server's answer", () => {
  const resolve = (hostname: string) =>
    Effect.gen(function* () {
      const { address } = yield* nameServer({
        "both.example": ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"],
        "v4.example": ["8.8.8.8"],
        "v6.example": ["2606:4700:4700::1111"],
        "empty.example": [],
        "silent.example": null
      })
      return yield* resolveDestination(hostname, publicAddressesOnly).pipe(
        // Only silence is waited out: an answer may be slow to come on a busy machine
        Effect.provide(
          DnsResolver.layerWith({
            nameServers: [address],
            timeout: hostname === "silent.example" ? "300 millis" : "20 seconds"
          })
        )
      )
    })

  it.scopedLive("holds all addresses of both families", function* () {
    const addresses = yield* resolve("both.example")
    expect(addresses).toHaveLength(3)
    expect(addresses).toEqual(
      expect.arrayContaining([
        { address: "8.8.8.8", family: 4 },
        { address: "1.1.1.1", family: 4 },
        { address: "2606:4700:4700::1111", family: 6 }
      ])
    )
  })

  it.scopedLive("may be of one family only", function* () {
    expect(yield* resolve("v4.example")).toEqual([{ address: "8.8.8.8", family: 4 }])
    expect(yield* resolve("v6.example")).toEqual([{ address: "2606:4700:4700::1111", family: 6 }])
  })

  it.scopedLive.each([
    ["ipv6", "8.8.8.8"],
    ["ipv4", "2606:4700:4700::1111"]
  ] as const)("is enough without one about %s, on which the server keeps silent", ([silent, address]) =>
    Effect.gen(function* () {
      const zone = { "half.example": [address], "inside.example": [silent === "ipv6" ? "10.0.0.1" : "fd00::1"] }
      const server = yield* nameServer(zone, { "half.example": silent, "inside.example": silent })
      const resolver = DnsResolver.layerWith({ nameServers: [server.address] })
      const resolved = (name: string) => Effect.provide(resolveDestination(name, publicAddressesOnly), resolver)
      expect((yield* resolved("half.example")).map((one) => one.address)).toEqual([address])
      expect(yield* Effect.flip(resolved("inside.example"))).toMatchObject({ _tag: "DestinationRefusal" })
    })
  )

  it.scopedLive.each(["empty.example", "unknown.example", "silent.example"])("may be none: %s", (hostname) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(resolve(hostname))
      expect(error).toMatchObject({ _tag: "DestinationUnresolvable", hostname })
      expect(error.message).toContain(hostname)
    })
  )
})
