import { connect } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { databasePid, dataDirectory, isAlive, startService, stop } from "./ServiceProcess.ts"

/** Loaded before the service: signals have it reject a promise that nobody awaits, or throw outside of everything. */
const faults = `
  process.on("SIGUSR2", () => void Promise.reject(new Error("the rejection of the test")))
  process.on("SIGWINCH", () => { throw new Error("the exception of the test") })`
const withFaults = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(faults)}` }

/** Sends bytes on a connection of its own, and resets it after so many milliseconds. */
const sendAndReset = (port: number, bytes: string | Buffer, after: number): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(bytes)
      setTimeout(() => socket.resetAndDestroy(), after)
    })
    socket.on("error", () => {}).on("close", () => resolve())
    socket.resume()
  })

const connectHead = "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n"
const tlsHello = Buffer.from("16030100c8010000c40303", "hex")

/** Heads that no client of ours sends. */
const hostileHeads: ReadonlyArray<string | Buffer> = [
  connectHead,
  "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\nmore",
  "GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  tlsHello,
  "GET /health/live HTTP/1.1\r\nhost:",
  "POST /webhooks/provider HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{",
  "POST /webhooks/provider HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffff\r\n",
  "GET / HTTP/1.1\r\nhost: x\r\nexpect: nonsense\r\n\r\n",
  `GET /${"a".repeat(20_000)} HTTP/1.1\r\n`,
  "\0\0\0\0",
  "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n".repeat(20)
]

describe("a process of the service", () => {
  it.scopedLive(
    "outlives hostile heads and connections that are reset, CONNECT's included",
    () =>
      Effect.gen(function* () {
        const service = yield* startService(yield* dataDirectory)
        const isLive = Effect.promise(async () => (await fetch(`${service.local.baseUrl}/health/live`)).status)
        const emulatorLives = Effect.promise(async () => (await fetch(service.local.emulatorUrl)).status < 600)
        for (const url of [service.local.baseUrl, service.local.emulatorUrl]) {
          const port = Number(new URL(url).port)
          yield* Effect.promise(() => sendAndReset(port, connectHead, 100))
          yield* Effect.forEach(
            Array.from({ length: 1000 }, (_, n) => n),
            (n) =>
              Effect.promise(() => {
                const head = Buffer.from(hostileHeads[n % hostileHeads.length] ?? "")
                // Whole or cut anywhere, and reset at once or when the server has begun
                const bytes = n % 3 === 0 ? head.subarray(0, (n * 7919) % (head.length + 1)) : head
                return sendAndReset(port, bytes, n % 5)
              }),
            { concurrency: 32, discard: true }
          )
        }
        expect(yield* isLive).toBe(200)
        expect(yield* emulatorLives).toBe(true)
        expect(service.output.stderr).not.toContain("was not caught")
      }),
    240_000
  )

  it.scopedLive(
    "logs a rejection that nobody handles, and goes on",
    () =>
      Effect.gen(function* () {
        const service = yield* startService(yield* dataDirectory, withFaults)
        service.child.kill("SIGUSR2")
        const log = () => service.output.stdout + service.output.stderr
        yield* eventuallyTrue("the log's line", () => log().includes("the rejection of the test"))
        expect(log()).toContain("A rejected promise was not handled")
        const answer = yield* Effect.promise(() => fetch(`${service.local.baseUrl}/health/live`))
        expect(answer.status).toBe(200)
      }),
    240_000
  )

  it.scopedLive(
    "ends in order, with exit code 1, by an exception that nobody catches",
    () =>
      Effect.gen(function* () {
        const directory = yield* dataDirectory
        const service = yield* startService(directory, withFaults)
        const database = yield* databasePid(directory)
        const { code } = yield* stop(service, "SIGWINCH")
        expect(code).toBe(1)
        const log = service.output.stdout + service.output.stderr
        expect(log).toContain("the exception of the test")
        expect(log).toContain("Shutdown: done")
        expect(yield* isAlive(database)).toBe(false)
      }),
    240_000
  )

  it.scopedLive(
    "ends in order if its terminal is closed",
    () =>
      Effect.gen(function* () {
        const directory = yield* dataDirectory
        const service = yield* startService(directory)
        const database = yield* databasePid(directory)
        yield* stop(service, "SIGHUP", "group")
        expect(service.output.stdout + service.output.stderr).toContain("Shutdown: done")
        expect(yield* isAlive(database)).toBe(false)
      }),
    240_000
  )
})
