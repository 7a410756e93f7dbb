import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { bodyLimits } from "../../../src/server/Body.ts"
import { paymentIntent } from "../../events/ProviderEvents.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { onService, TestService, testSettings } from "../../harness/TestService.ts"
import { notification, signature } from "../../inbound/Notifications.ts"
import { lastBody, open, statusesIn, type Wire } from "./Wire.ts"

const MiB = 1024 * 1024
const api = { roles: { api: true, worker: false } } as const

const head = (length: number, headers: ReadonlyArray<string> = [`stripe-signature: ${signature("")}`]) =>
  ["POST /webhooks/provider HTTP/1.1", "host: x", ...headers, `content-length: ${length}`, "", ""].join("\r\n")

const largeBody = Buffer.alloc(MiB - 1, " ")

/** A notification of 1 MiB that looks signed, but for its last byte. */
const openUnfinished = (address?: string) => open(Buffer.concat([Buffer.from(head(MiB)), largeBody]), address)

const openMany = (count: number, address?: string) =>
  Effect.all(Array.from({ length: count }, () => openUnfinished(address)))

const isRefused = ({ received }: Wire) => statusesIn(received())[0] === "503"

const refusedAmong = (wires: ReadonlyArray<Wire>) => wires.filter(isRefused)

/** Sends the last byte of those that were not refused; returns how many were read, so that their signature was looked at. */
const finish = (wires: ReadonlyArray<Wire>) =>
  Effect.gen(function* () {
    for (const wire of wires) if (!isRefused(wire)) wire.socket.write(" ")
    yield* eventuallyTrue("the answers", () => wires.every(({ received }) => statusesIn(received()).length > 0))
    const read = wires.filter((wire) => !isRefused(wire))
    expect(read.map(({ received }) => statusesIn(received()))).toEqual(read.map(() => ["400"]))
    return read.length
  })

const ofAddress = bodyLimits.strangers / 2 / MiB
const ofAll = bodyLimits.strangers / MiB

onService(api)("unfinished bodies", (it) => {
  it.scoped("of one address hold half of the room; the oldest are refused, and nobody else notices", function* () {
    const { organization, request } = yield* TestService
    const wires = yield* openMany(ofAddress + 24)
    yield* eventuallyTrue("the refusals", () => refusedAmong(wires).length >= 24)
    const elsewhere = yield* open(`${head(2)}{}`, "127.0.0.2")
    yield* eventuallyTrue("another address' answer", () => statusesIn(elsewhere.received()).length > 0)
    expect(statusesIn(elsewhere.received())).toEqual(["400"])
    // A caller with a key has room of its own, at the same address
    const product = yield* request("POST", `/v2/organizations/${organization.id}/provider/products`, {
      key: organization.testKey,
      body: { name: "" },
      headers: { "idempotency-key": randomUUID() }
    })
    expect(product.status).toBe(422)
    expect(yield* finish(wires)).toBe(ofAddress)
    for (const wire of refusedAmong(wires)) {
      yield* eventuallyTrue("the end", wire.closed)
      expect(wire.received()).toMatch(/^retry-after: 1\r$/im)
      expect(wire.received()).toMatch(/^connection: close\r$/im)
      expect(lastBody(wire)["code"]).toBe("service_unavailable")
    }
  })

  it.scoped("of many addresses hold all of the room, and a burst of the provider still gets through", function* () {
    const addresses = Array.from({ length: 5 }, (_, n) => `127.0.0.${n + 10}`)
    const slow = (yield* Effect.forEach(addresses, (address) => openMany(12, address))).flat()
    yield* eventuallyTrue("the refusals", () => refusedAmong(slow).length >= slow.length - ofAll)
    const body = notification("acct_nobody", { object: { ...paymentIntent, description: "x".repeat(64 * 1024) } })
    const bytes = `${head(body.length, [`stripe-signature: ${signature(body)}`])}${body}`
    const burst = yield* Effect.all(Array.from({ length: 200 }, () => open(bytes, "127.0.0.3")))
    yield* eventuallyTrue("its answers", () => burst.every(({ received }) => statusesIn(received()).length > 0))
    expect(new Set(burst.flatMap(({ received }) => statusesIn(received())))).toEqual(new Set(["200"]))
    expect(yield* finish(slow)).toBeLessThanOrEqual(ofAll)
  })
})

onService(api)("a body's room", (it) => {
  it.scoped("is given back when the body ends, or is cut", function* () {
    expect(yield* finish(yield* openMany(ofAddress))).toBe(ofAddress)
    const cut = yield* openMany(ofAddress)
    expect(refusedAmong(cut)).toEqual([])
    for (const { socket } of cut) socket.destroy()
    expect(yield* finish(yield* openMany(ofAddress))).toBe(ofAddress)
  })

  it.scoped("is not needed for what its head shows to be unsigned: it is refused before its body", function* () {
    const now = Math.floor(Date.now() / 1000)
    const v1 = "0".repeat(64)
    const odd = ["x", `v1=${v1}`, `t=${now}`, `t=${now},v1=`, `t=${now},v0=${v1}`, `t=${now - 400},v1=${v1}`]
    const headers = [[], ...odd.map((value) => [`stripe-signature: ${value}`])]
    for (const path of ["/webhooks/provider", "/webhooks/provider/thin"]) {
      for (const some of headers) {
        const wire = yield* open(head(MiB, some).replace("/webhooks/provider", path))
        yield* eventuallyTrue("the answer", () => wire.received().includes("}"))
        expect([some, statusesIn(wire.received())]).toEqual([some, ["400"]])
        expect(lastBody(wire)["code"]).toBe("signature_invalid")
      }
    }
  })
})

onService({ ...api, http: { ...testSettings.http, requestTimeout: Duration.seconds(2) } })("a body's room", (it) => {
  it.scoped("is given back when the body takes too long", function* () {
    for (let round = 0; round < 2; round += 1) {
      const late = yield* openMany(ofAddress)
      yield* eventuallyTrue("the end of the late ones", () => late.every(({ closed }) => closed()))
      expect(late.map(({ received }) => statusesIn(received()))).toEqual(late.map(() => ["408"]))
    }
  })
})
