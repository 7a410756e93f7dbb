import { connect } from "node:net"

/**
 * A load generator: as many connections as it is told, each with one request at a time, over plain sockets, since what
 * it costs is taken from the servers' processors. Prints what it saw as one line of JSON.
 *
 * Arguments, as JSON: `{url, paths, keys, connections, warmUpMillis, millis}`; each connection has a path and a key.
 */

interface Options {
  readonly url: string
  readonly paths: ReadonlyArray<string>
  readonly keys: ReadonlyArray<string>
  readonly connections: number
  readonly warmUpMillis: number
  readonly millis: number
}

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
const options: Options = JSON.parse(process.argv[2] ?? "")

const latencies: Array<number> = []
let answered = 0
let failures = 0
let firstFailure = ""
let measuring = false
let over = false

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

const run = (index: number): void => {
  const { hostname, port } = new URL(options.url)
  const path = options.paths[index % options.paths.length]
  const key = options.keys[index % options.keys.length]
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\nx-api-key: ${key}\r\n\r\n`)
  const socket = connect(Number(port), hostname).setNoDelay()
  let sentAt = 0
  let received: Buffer = Buffer.alloc(0)
  const send = () => {
    sentAt = performance.now()
    socket.write(request)
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
    if (over) socket.destroy()
    else send()
  })
  socket.on("error", (error) => {
    failures++
    firstFailure ||= String(error)
  })
}

for (let index = 0; index < options.connections; index++) run(index)

setTimeout(() => {
  measuring = true
  const startedAt = performance.now()
  setTimeout(() => {
    measuring = false
    over = true
    const sorted = latencies.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
    const result: LoadResult = {
      requests: sorted.length,
      answered,
      seconds: (performance.now() - startedAt) / 1000,
      p50: at(0.5),
      p99: at(0.99),
      failures,
      firstFailure
    }
    process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
  }, options.millis)
}, options.warmUpMillis)
