import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { Worker } from "node:worker_threads"
import { Effect, Fiber, Layer } from "effect"
import { DnsResolver } from "../../src/engine/transport/DestinationUrl.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { httpConsumer, post, transport, until } from "./TransportServers.ts"

/** A consumer that is too busy to accept connections, so that connecting to it takes until it is freed. */
interface BusyConsumer {
  readonly port: number
  /** Lets it accept what waits. */
  readonly free: () => void
}

/** On a thread of its own, which sleeps once it listens. */
const busyConsumer = (host: string, port = 0) =>
  Effect.acquireRelease(
    Effect.async<BusyConsumer & { readonly end: () => Promise<unknown> }>((resume) => {
      const freed = new Int32Array(new SharedArrayBuffer(4))
      const worker = new Worker(
        `
        const { parentPort, workerData: { freed, host, port } } = require("node:worker_threads")
        const server = require("node:http").createServer((request, response) => response.end("ok"))
        server.listen({ host, port, backlog: 1 }, () => {
          parentPort.postMessage(server.address().port)
          Atomics.wait(freed, 0, 0)
        })
        `,
        { eval: true, workerData: { freed, host, port } }
      )
      const free = () => {
        Atomics.store(freed, 0, 1)
        Atomics.notify(freed, 0)
      }
      const fillers: Array<Socket> = []
      worker.once("message", (port: number) => {
        // More than may wait to be accepted
        for (let filler = 0; filler < 4; filler++) fillers.push(connect({ host, port }).on("error", () => {}))
        const end = () => {
          for (const filler of fillers) filler.destroy()
          free()
          return worker.terminate()
        }
        resume(Effect.succeed({ port, free, end }))
      })
    }),
    ({ end }) => Effect.promise(end)
  )

/** How many connections of this machine to the address have been begun and not answered. */
const begun = (host: string, port: number): number => {
  const bytes = host.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0"))
  const remote = `${bytes.reverse().join("")}:${port.toString(16).padStart(4, "0")}`.toUpperCase()
  const synSent = "02"
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , to, state]) => to === remote && state === synSent).length
}

const leadingTo = (...addresses: ReadonlyArray<string>) =>
  Layer.succeed(DnsResolver, {
    resolve: () => Effect.succeed(addresses.map((address) => ({ address, family: 4 as const })))
  })

describe.skipIf(process.platform !== "linux")(
  "a name with several addresses (skipped unless on Linux, which has all of 127.0.0.0/8)",
  () => {
    it.scopedLive("is reached at one that is slow to connect, if the others never answer", function* () {
      const slow = yield* busyConsumer("127.0.0.2")
      const dead = yield* busyConsumer("127.0.0.3", slow.port)
      yield* until(() => begun("127.0.0.2", slow.port) > 0 && begun("127.0.0.3", dead.port) > 0)
      const before = begun("127.0.0.3", dead.port)
      const attempt = yield* Effect.fork(
        post(`http://localhost:${slow.port}/`).pipe(
          Effect.provide(transport({ timeout: "30 seconds" }, leadingTo("127.0.0.2", "127.0.0.3")))
        )
      )
      yield* until(() => begun("127.0.0.3", dead.port) > before)
      slow.free()
      expect(yield* Fiber.join(attempt)).toMatchObject({ httpStatus: 200, errorCode: null })
    })

    it.scopedLive("is reached at the last one, if the others never answer", function* () {
      const consumer = yield* httpConsumer((_, response) => response.end("ok"), "127.0.0.4")
      const addresses = ["127.0.0.2", "127.0.0.3"]
      for (const address of addresses) yield* busyConsumer(address, consumer.port)
      yield* until(() => addresses.every((address) => begun(address, consumer.port) > 0))
      const outcome = yield* post(`http://localhost:${consumer.port}/`).pipe(
        Effect.provide(transport({ timeout: "30 seconds" }, leadingTo(...addresses, "127.0.0.4")))
      )
      expect(outcome).toMatchObject({ httpStatus: 200, errorCode: null })
      // Nothing of the others goes on
      yield* until(() => addresses.every((address) => begun(address, consumer.port) <= 4))
      expect(consumer.requests).toHaveLength(1)
    })

    it.scopedLive("timeout: if none of them answers", function* () {
      const one = yield* busyConsumer("127.0.0.2")
      yield* busyConsumer("127.0.0.3", one.port)
      yield* until(() => begun("127.0.0.2", one.port) > 0 && begun("127.0.0.3", one.port) > 0)
      const outcome = yield* post(`http://localhost:${one.port}/`).pipe(
        Effect.provide(transport({ timeout: "1 second" }, leadingTo("127.0.0.2", "127.0.0.3")))
      )
      expect(outcome).toMatchObject({ httpStatus: null, errorCode: "timeout" })
      expect(outcome.durationMs).toBeGreaterThanOrEqual(1000)
    })
  }
)
