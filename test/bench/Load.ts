import { createHmac } from "node:crypto"
import { connect } from "node:net"
import { percentile } from "./Bench.ts"
import { notificationOf } from "./inbound/Notification.ts"

/**
 * A load generator: as many connections as it is told, each with one request at a time, over plain sockets, since what
 * it costs is taken from the servers' processors. Prints what it saw as one line of JSON, once all is answered.
 *
 * Argument, as JSON: `LoadOptions`.
 */

/** What each connection asks for: the same read under its own key, or notifications, each of an event of its own. */
export type LoadOptions = {
  readonly url: string
  readonly connections: number
  readonly warmUpMillis: number
  /** Without it, it goes on until it is told to end, whatever is answered, and its line of JSON is an empty one. */
  readonly millis?: number
} & (
  | { readonly paths: ReadonlyArray<string>; readonly keys: ReadonlyArray<string> }
  /** `prefix` is what the ids of the events begin with. */
  | { readonly secret: string; readonly account: string; readonly prefix: string }
)

/** What a run saw: latencies in milliseconds, of requests that were answered 200 in the measured time. */
export interface LoadResult {
  readonly requests: number
  /** All that were answered, the warm-up's too. */
  readonly answered: number
  readonly seconds: number
  readonly p50: number
  readonly p99: number
  readonly failures: number
  readonly firstFailure: string
}

// Written by the bench that starts this process, in this form
const options: LoadOptions = JSON.parse(process.argv[2] ?? "")
const { hostname, port } = new URL(options.url)

let sent = 0

/** The next request of a connection: a read stays the same, a notification is signed as the provider signs. */
const requestsOf = (index: number): (() => string) => {
  if ("paths" in options) {
    const { keys, paths } = options
    const read = `GET ${paths[index % paths.length]} HTTP/1.1\r\nhost: ${hostname}\r\nx-api-key: ${keys[index % keys.length]}\r\n\r\n`
    return () => read
  }
  const { account, prefix, secret } = options
  return () => {
    sent++
    const body = notificationOf(account, `${prefix}${sent}`)
    const time = Math.floor(Date.now() / 1000)
    const signature = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")
    return [
      "POST /webhooks/provider HTTP/1.1",
      `host: ${hostname}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      `stripe-signature: t=${time},v1=${signature}`,
      "",
      body
    ].join("\r\n")
  }
}

const latencies: Array<number> = []
let answered = 0
let failures = 0
let firstFailure = ""
let measuring = false
let over = false
let open = options.connections
let seconds = 0

const endOfHead = Buffer.from("\r\n\r\n")

/** The length of a whole response at the start of the bytes, where it is there; Node's servers write its length. */
const responseLength = (bytes: Buffer): number | undefined => {
  const end = bytes.indexOf(endOfHead)
  if (end < 0) return undefined
  const length = /content-length: (\d+)/i.exec(bytes.toString("latin1", 0, end))?.[1]
  if (length === undefined) throw new Error("A response without a content-length")
  const total = end + 4 + Number(length)
  return bytes.length >= total ? total : undefined
}

const finish = (): void => {
  const result: LoadResult = {
    requests: latencies.length,
    answered,
    seconds,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    failures,
    firstFailure
  }
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
}

const run = (index: number): void => {
  const next = requestsOf(index)
  const socket = connect(Number(port), hostname).setNoDelay()
  let sentAt = 0
  let received: Buffer = Buffer.alloc(0)
  const send = () => {
    const request = next()
    sentAt = performance.now()
    socket.write(request)
  }
  const close = () => {
    socket.destroy()
    open -= 1
    // What is under way is awaited, so that all that was sent can be looked for
    if (open === 0) finish()
  }
  socket.on("connect", send)
  socket.on("data", (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const length = responseLength(received)
    if (length === undefined) return
    answered++
    if (received.toString("latin1", 9, 12) !== "200") {
      failures++
      firstFailure ||= received.toString("utf8", 0, 1000)
    } else if (measuring) {
      latencies.push(performance.now() - sentAt)
    }
    received = received.subarray(length)
    if (over) close()
    else send()
  })
  socket.on("error", (error) => {
    failures++
    firstFailure ||= String(error)
    close()
  })
}

for (let index = 0; index < options.connections; index++) run(index)

const measure = (millis: number) => {
  measuring = true
  const startedAt = performance.now()
  setTimeout(() => {
    measuring = false
    over = true
    seconds = (performance.now() - startedAt) / 1000
  }, millis)
}

const { millis, warmUpMillis } = options
if (millis === undefined) process.stdout.write("{}\n")
else setTimeout(() => measure(millis), warmUpMillis)
