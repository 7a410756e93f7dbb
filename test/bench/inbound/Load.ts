import { createHmac } from "node:crypto"
import { connect } from "node:net"
import type { LoadResult } from "../api/Load.ts"
import { notificationOf } from "./Notification.ts"

/**
 * Sends notifications, each of an event of its own and signed as the provider signs: as many connections as it is told,
 * each with one at a time, over plain sockets, since what it costs is taken from the servers' processors. Prints what it
 * saw as one line of JSON.
 *
 * Arguments, as JSON: `{url, secret, account, prefix, connections, warmUpMillis, millis}`.
 */

interface Options {
  readonly url: string
  readonly secret: string
  readonly account: string
  /** What the ids of the events begin with. */
  readonly prefix: string
  readonly connections: number
  readonly warmUpMillis: number
  readonly millis: number
}

// Written by the bench that starts this process, in this form
const options: Options = JSON.parse(process.argv[2] ?? "")

const latencies: Array<number> = []
let sent = 0
let answered = 0
let failures = 0
let firstFailure = ""
let measuring = false
let over = false
let open = options.connections

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

const { hostname, port } = new URL(options.url)

const nextRequest = (): string => {
  sent++
  const body = notificationOf(options.account, `${options.prefix}${sent}`)
  const time = Math.floor(Date.now() / 1000)
  const signature = createHmac("sha256", options.secret).update(`${time}.${body}`).digest("hex")
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

const finish = (seconds: number): void => {
  const sorted = latencies.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
  const result: LoadResult = {
    requests: sorted.length,
    answered,
    seconds,
    p50: at(0.5),
    p99: at(0.99),
    failures,
    firstFailure
  }
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
}

let measuredSeconds = 0

const run = (): void => {
  const socket = connect(Number(port), hostname).setNoDelay()
  let sentAt = 0
  let received: Buffer = Buffer.alloc(0)
  const send = () => {
    const request = nextRequest()
    sentAt = performance.now()
    socket.write(request)
  }
  const close = () => {
    socket.destroy()
    open -= 1
    // What is under way is awaited, so that all that was sent can be looked for
    if (open === 0) finish(measuredSeconds)
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

for (let index = 0; index < options.connections; index++) run()

setTimeout(() => {
  measuring = true
  const startedAt = performance.now()
  setTimeout(() => {
    measuring = false
    over = true
    measuredSeconds = (performance.now() - startedAt) / 1000
  }, options.millis)
}, options.warmUpMillis)
