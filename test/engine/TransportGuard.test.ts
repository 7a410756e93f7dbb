import { BlockList } from "node:net"
import { networkInterfaces } from "node:os"
import { Effect, Exit, Layer } from "effect"
import {
  DestinationUnresolvable,
  DnsResolver,
  type ResolvedAddress
} from "../../src/engine/transport/DestinationUrl.ts"
import { isPrivateAddress } from "../../src/platform/bounds/PrivateNetworks.ts"
import { describe, expect, it, layer } from "../harness/Tests.ts"
import { httpConsumer, post, transport, until } from "./TransportServers.ts"

const ok = httpConsumer((_, response) => response.end("ok"))

const success = { httpStatus: 200, errorCode: null }
const blocked = { httpStatus: null, errorCode: "destination_blocked", retryAfter: null }

const toAddresses = (addresses: ReadonlyArray<string>) =>
  addresses.map((address): ResolvedAddress => ({ address, family: address.includes(":") ? 6 : 4 }))

/** A resolver that gives these answers, one after another and then the last for ever, and records what it was asked. */
const answering = (...answers: ReadonlyArray<ReadonlyArray<string>>) => {
  const asked: Array<string> = []
  const layer = Layer.succeed(DnsResolver, {
    resolve: (hostname) =>
      Effect.sync(() => {
        const answer = answers[Math.min(asked.length, answers.length - 1)] ?? []
        asked.push(hostname)
        return toAddresses(answer)
      })
  })
  return { asked, layer }
}

layer(transport())("an address that is not public", (it) => {
  const hosts = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "017700000001",
    "%31%32%37.0.0.1",
    "１２７.0.0.1",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "localhost",
    "localhost.",
    "app.localhost"
  ]

  it.scoped.each(hosts)("is not connected to, however it is written: %s", function* (host) {
    const consumer = yield* ok
    for (const url of [`https://${host}/`, `https://${host}:${consumer.port}/`, `http://${host}:${consumer.port}/`]) {
      expect(yield* post(url, { allowLocal: false })).toMatchObject(blocked)
    }
    expect(consumer.sockets).toHaveLength(0)
  })

  it.scoped.each(["10.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "192.168.1.1", "2852039166", "0.0.0.0", "[::]"])(
    "is not connected to in local development either: %s",
    function* (host) {
      for (const url of [`http://${host}/`, `https://${host}/`, `http://${host}:8080/`]) {
        expect(yield* post(url)).toMatchObject(blocked)
      }
    }
  )

  it.scoped.each(["", "not a url", "ftp://localhost/", "http://user:pass@localhost/", "http://localhost/?a=1"])(
    "is what a URL leads to that is no destination: %j",
    function* (url) {
      expect(yield* post(url)).toMatchObject(blocked)
    }
  )

  it.scoped("is connected to in local development where it is this machine's, by all its names", function* () {
    const consumer = yield* ok
    for (const host of ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"]) {
      expect(yield* post(`http://${host}:${consumer.port}/`)).toMatchObject(success)
    }
    expect(consumer.requests).toHaveLength(4)
  })
})

describe("a name", () => {
  const leadsInside: ReadonlyArray<{ readonly addresses: ReadonlyArray<string> }> = [
    { addresses: ["127.0.0.1"] },
    { addresses: ["10.0.0.1"] },
    { addresses: ["8.8.8.8", "169.254.169.254"] },
    { addresses: ["169.254.169.254", "8.8.8.8"] },
    { addresses: ["2606:4700:4700::1111", "::ffff:10.0.0.1"] },
    { addresses: ["::1"] },
    { addresses: ["not an address"] }
  ]

  it.scopedLive.each(leadsInside)("is blocked that leads to $addresses, in local development too", ({ addresses }) => {
    const { asked, layer } = answering(addresses)
    return Effect.gen(function* () {
      expect(yield* post("https://hooks.example.com/", { allowLocal: false })).toMatchObject(blocked)
      expect(yield* post("https://hooks.example.com/")).toMatchObject(blocked)
      expect(asked).toEqual(["hooks.example.com", "hooks.example.com"])
    }).pipe(Effect.provide(transport({}, layer)))
  })

  it.scopedLive("is looked up once for a connection: a later answer changes nothing", () => {
    const { asked, layer } = answering(["127.0.0.1"], ["10.0.0.1"])
    return Effect.gen(function* () {
      const consumer = yield* ok
      const url = `http://localhost:${consumer.port}/`
      for (let attempt = 0; attempt < 3; attempt++) expect(yield* post(url)).toMatchObject(success)
      expect(asked).toEqual(["localhost"])
      expect(consumer.sockets).toHaveLength(1)
    }).pipe(Effect.provide(transport({}, layer)))
  })

  it.scopedLive("is checked anew for each new connection", () => {
    const { asked, layer } = answering(["127.0.0.1"], ["10.0.0.1"])
    return Effect.gen(function* () {
      const consumer = yield* ok
      const url = `http://localhost:${consumer.port}/`
      expect(yield* post(url)).toMatchObject(success)
      expect(yield* post(url)).toMatchObject(blocked)
      expect(asked).toHaveLength(2)
      expect(consumer.sockets).toHaveLength(1)
    }).pipe(Effect.provide(transport({ idleConnectionsPerOrigin: 0 }, layer)))
  })

  // Only Linux has all of 127.0.0.0/8 without further ado
  it.scopedLive.skipIf(process.platform !== "linux")(
    "leads to the address that was checked and to no other (skipped unless on Linux, which has all of 127.0.0.0/8)",
    () =>
      Effect.gen(function* () {
        const checked = yield* httpConsumer((_, response) => response.writeHead(201).end(), "127.0.0.2")
        const outcome = yield* post(`http://localhost:${checked.port}/`).pipe(
          Effect.provide(transport({}, answering(["127.0.0.2"]).layer))
        )
        expect(outcome).toMatchObject({ httpStatus: 201, errorCode: null })
        expect(checked.sockets.map((socket) => socket.localAddress)).toEqual(["127.0.0.2"])
      })
  )

  it.scopedLive("with several addresses is reached at one that answers", function* () {
    const consumer = yield* ok
    const outcome = yield* post(`http://localhost:${consumer.port}/`).pipe(
      Effect.provide(transport({}, answering(["::1", "127.0.0.1"]).layer))
    )
    expect(outcome).toMatchObject(success)
    expect(consumer.requests).toHaveLength(1)
  })

  const unknown = Layer.succeed(DnsResolver, {
    resolve: (hostname) => Effect.fail(new DestinationUnresolvable({ hostname, cause: "ENOTFOUND" }))
  })

  it.scopedLive.each([
    { what: "without an address", host: "hooks.example.com", resolver: answering([]).layer },
    { what: "that is unknown", host: "hooks.example.com", resolver: unknown },
    { what: "that the system's resolver does not know", host: "no-such-name.invalid", resolver: DnsResolver.layer }
  ])("dns_failure: $what", ({ host, resolver }) =>
    Effect.gen(function* () {
      expect(yield* post(`https://${host}/`)).toMatchObject({ httpStatus: null, errorCode: "dns_failure" })
    }).pipe(Effect.provide(transport({}, resolver)))
  )

  it.scopedLive("timeout: whose look-up takes too long, and the look-up ends", () => {
    let ended = false
    const resolver = Layer.succeed(DnsResolver, {
      resolve: () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            ended = true
          })
        )
    })
    return Effect.gen(function* () {
      expect(yield* post("https://hooks.example.com/")).toMatchObject({ httpStatus: null, errorCode: "timeout" })
      yield* until(() => ended)
    }).pipe(Effect.provide(transport({ timeout: "100 millis" }, resolver)))
  })

  it.scopedLive("whose resolver has a bug is a defect, and no outcome", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(post("https://hooks.example.com/"))
      expect(Exit.isFailure(exit) && exit.cause._tag).toBe("Die")
    }).pipe(Effect.provide(transport({}, Layer.succeed(DnsResolver, { resolve: () => Effect.dieMessage("a bug") }))))
  )
})

/** An address of this machine in a private network, as a sibling container's would be. */
const privateAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ address }) => isPrivateAddress(address))

describe("a private network that is open", () => {
  const networks = new BlockList()
  if (privateAddress !== undefined) {
    networks.addAddress(privateAddress.address, privateAddress.family === "IPv6" ? "ipv6" : "ipv4")
  }
  const address = privateAddress?.address ?? ""
  const { asked, layer } = answering([address], [address], ["127.0.0.1"])

  it.scopedLive.skipIf(privateAddress === undefined)(
    "is delivered to, by a name that is resolved and checked for each connection (skipped without such an address)",
    () =>
      Effect.gen(function* () {
        const consumer = yield* httpConsumer((_, response) => response.end("ok"), address)
        const url = `http://receiver:${consumer.port}/hook`
        expect(yield* post(url, { allowLocal: false, networks })).toMatchObject(success)
        expect(yield* post(url, { allowLocal: false })).toMatchObject(blocked)
        expect(yield* post(url, { allowLocal: true })).toMatchObject(blocked)
        expect(consumer.requests).toHaveLength(1)
        for (const socket of consumer.sockets) socket.destroy()
        yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
        expect(yield* post(url, { allowLocal: false, networks })).toMatchObject(success)
        for (const socket of consumer.sockets) socket.destroy()
        yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
        expect(yield* post(url, { allowLocal: true, networks })).toMatchObject(blocked)
        expect(consumer.requests).toHaveLength(2)
        expect(asked).toEqual(["receiver", "receiver", "receiver"])
      }).pipe(Effect.provide(transport({}, layer)))
  )
})
