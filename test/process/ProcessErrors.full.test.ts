import { connect } from "node:net"
import { Effect } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
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
  it.scopedLive("outlives hostile heads, reset connections (of CONNECT too) and unhandled rejections", function* () {
    const service = yield* startService(yield* dataDirectory, withFaults)
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
    service.child.kill("SIGUSR2")
    const log = () => service.output.stdout + service.output.stderr
    yield* eventuallyTrue("the log's line", () => log().includes("the rejection of the test"))
    expect(log()).toContain("A rejected promise was not handled")
    expect(yield* isLive).toBe(200)
  })

  it.scopedLive.each<{ by: string; signal: NodeJS.Signals; to: "process" | "group"; says: string; codes: object }>([
    {
      by: "an exception that nobody catches",
      signal: "SIGWINCH",
      to: "process",
      says: "the exception of the test",
      codes: [1]
    },
    { by: "the end of its terminal", signal: "SIGHUP", to: "group", says: "", codes: expect.anything() }
  ])("ends in order by $by", function* ({ codes, says, signal, to }) {
    const directory = yield* dataDirectory
    const service = yield* startService(directory, withFaults)
    const database = yield* databasePid(directory)
    const { code } = yield* stop(service, signal, to)
    expect([code]).toEqual(codes)
    const log = service.output.stdout + service.output.stderr
    for (const words of [says, "Shutdown: done"]) expect(log).toContain(words)
    expect(yield* isAlive(database)).toBe(false)
  })
})
