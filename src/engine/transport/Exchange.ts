import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http"
import { performance } from "node:perf_hooks"
import { Duplex } from "node:stream"
import { Data, type Duration, Exit } from "effect"
import { refusedHeaderName } from "../../events/DeliveryHeaders.ts"
import { type AttemptErrorCode, type AttemptOutcome, parseRetryAfter, refusedCode } from "../attempts/Outcome.ts"
import {
  attemptErrorCode,
  ConnectError,
  type Connection,
  type ConnectionUser,
  type Deadlines,
  Expiring,
  type Origin,
  TransportBug
} from "./Connections.ts"

/**
 * One request and its answer, on one connection.
 *
 * The answers that consumers usually give are parsed here. They use a narrow part of HTTP/1.1 that all parsers read alike: one
 * final answer whose head is printable ASCII in lines of the strict form, with one `Content-Length` or plain chunks.
 *
 * Anything else is left to `StrictAnswer`, which reads the same bytes from the first. So `PlainAnswer` only has to
 * recognize usual answers.
 */

/** The state after some bytes; nothing may be read after `complete` or `unusual`. */
export type Reading = "more" | "complete" | "unusual"

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
const lines = `HTTP/1\\.1 [2-5][0-9]{2} [\\x20-\\x7e]*\\r\\n(?:${token}:[\\t\\x20-\\x7e]*\\r\\n)*`
const wholeHead = new RegExp(`^${lines}\\r\\n`)
const startOfHead = new RegExp(`^${lines}(?:\\r|${token}(?::[\\t\\x20-\\x7e]*\\r?)?)?$`)

/**
 * Heads longer than this, in bytes, or in more pieces than this, are unusual: each piece costs another scan of all
 * before it.
 */
const maxHeadBytes = 8 * 1024
const maxHeadPieces = 8

/** In lower case, as Node reports header names. */
const refusedHeader = refusedHeaderName.toLowerCase()

/** The headers with a meaning here. Any other header that parsers interpret makes an answer unusual. */
const knownHeader = new RegExp(
  `\\r\\n(connection|content-length|keep-alive|proxy-connection|retry-after|${refusedHeader}|transfer-encoding|upgrade):([^\\r]*)`,
  "gi"
)

const connectionOptions = /^(?:keep-alive|close|upgrade)(?:, ?(?:keep-alive|close|upgrade))*$/i
const lengthBit = 1
const wholeLength = /^[0-9]{1,9}$/
const keepAliveSeconds = /timeout=([0-9]{1,9})/

/** A chunk's size, complete or in part. All but the first follow the line break after the previous chunk's data. */
const firstSize = { whole: /^([0-9a-f]{1,6})\r\n/i, start: /^(?:[0-9a-f]{1,6}\r?)?$/i }
const nextSize = { whole: /^\r\n([0-9a-f]{1,6})\r\n/i, start: /^(?:\r(?:\n(?:[0-9a-f]{1,6}\r?)?)?)?$/i }
const longestSize = 2 + 6 + 2

/** A usual answer, as its bytes arrive. */
export class PlainAnswer {
  /** From 200 to 599, once the head is known. */
  status: number | null = null
  /** How much of the body has arrived, in bytes. */
  bodyBytes = 0
  /** Whether the connection may be reused after this answer. */
  keepsAlive = true
  /** How many seconds the consumer keeps the connection open; null if not announced. */
  keepAliveSeconds: number | null = null
  /** The `Retry-After` header. */
  retryAfter: string | undefined
  /** The header of `refusedHeaderName`. */
  refused: string | undefined
  #length: number | null = null
  #chunked = false
  /** The unparsed beginning of the head or of a chunk's size. */
  #start = ""
  /** Bytes left of the body or chunk. */
  #left = 0
  #size: typeof firstSize | null = firstSize
  #headPieces = 0

  /** Whether no further bytes can make the answer unusual. */
  get isSettled(): boolean {
    return this.status !== null && !this.#chunked
  }

  /** Reads further bytes, one per character of `text`. */
  read(text: string): Reading {
    if (this.status === null) return this.#readHead(text)
    return this.#chunked ? this.#readChunks(text) : this.#readBody(text.length)
  }

  #readHead(text: string): Reading {
    const start = this.#start + text
    const head = wholeHead.exec(start)?.[0]
    if (head === undefined) {
      this.#start = start
      // Incomplete headers are checked as well: bytes that parsers refuse at once must not wait for the rest
      this.#headPieces += 1
      const short = start.length < maxHeadBytes && this.#headPieces < maxHeadPieces
      const plain = short && startOfHead.test(start) && this.#readHeaders(start)
      return plain ? "more" : "unusual"
    }
    if (head.length > maxHeadBytes || !this.#readHeaders(head)) return "unusual"
    const status = Number(head.slice(9, 12))
    if (!this.#frame(status)) return "unusual"
    this.status = status
    this.#start = ""
    return this.#chunked ? this.#readChunks(start.slice(head.length)) : this.#readBody(start.length - head.length)
  }

  /**
   * Whether every header has a plain value and occurs once, and the body has at most one length, even if stated twice.
   */
  #readHeaders(head: string): boolean {
    let seen = 0
    let again = false
    knownHeader.lastIndex = 0
    for (let found = knownHeader.exec(head); found !== null; found = knownHeader.exec(head)) {
      const [, name = "", value = ""] = found
      const length = this.#length
      const bit = this.#readHeader(name.toLowerCase(), value.trimStart())
      if (bit === 0) return false
      if ((seen & bit) !== 0) {
        if (bit !== lengthBit || this.#length !== length) return false
        again = true
      }
      seen |= bit
    }
    if (again) this.keepsAlive = false
    return !this.#chunked || this.#length === null
  }

  /** Returns a bit for the header; 0 if it is unusual. */
  #readHeader(name: string, value: string): number {
    switch (name) {
      case "content-length":
        this.#length = Number(value)
        return wholeLength.test(value) ? lengthBit : 0
      case "transfer-encoding":
        this.#chunked = true
        return value.toLowerCase() === "chunked" ? 2 : 0
      case "connection":
        this.keepsAlive = !value.toLowerCase().includes("close")
        return connectionOptions.test(value) ? 4 : 0
      case "keep-alive": {
        const seconds = keepAliveSeconds.exec(value)?.[1]
        this.keepAliveSeconds = seconds === undefined ? null : Number(seconds)
        return 8
      }
      case "retry-after":
        this.retryAfter = value
        return 16
      case refusedHeader:
        this.refused = value
        return 32
      // Only an offer: the answer is final, and no upgrade was requested
      case "upgrade":
        return 64
      default:
        return 0
    }
  }

  /** Determines the end of the body; false if that is not clear. */
  #frame(status: number): boolean {
    if (status === 304) return false
    if (status === 204) {
      this.#left = 0
      return !this.#chunked && (this.#length === null || this.#length === 0)
    }
    this.#left = this.#length ?? 0
    return this.#chunked || this.#length !== null
  }

  #readBody(bytes: number): Reading {
    // Bytes after the end don't belong to the answer, and make the connection unusable
    if (bytes > this.#left) this.keepsAlive = false
    const read = Math.min(bytes, this.#left)
    this.bodyBytes += read
    this.#left -= read
    return this.#left === 0 ? "complete" : "more"
  }

  #readChunks(text: string): Reading {
    let rest = this.#start === "" ? text : this.#start + text
    this.#start = ""
    for (;;) {
      const data = Math.min(this.#left, rest.length)
      this.bodyBytes += data
      this.#left -= data
      if (this.#left > 0) return "more"
      if (data > 0) rest = rest.slice(data)
      if (this.#size === null) return this.#readEnd(rest)
      const size = this.#size.whole.exec(rest)
      if (size === null) {
        this.#start = rest
        return rest.length < longestSize && this.#size.start.test(rest) ? "more" : "unusual"
      }
      rest = rest.slice(size[0].length)
      this.#left = Number.parseInt(size[1] ?? "", 16)
      this.#size = this.#left === 0 ? null : nextSize
    }
  }

  /** The empty line after the last chunk; anything else would be a trailer. */
  #readEnd(rest: string): Reading {
    this.#start = rest
    if (rest === "" || rest === "\r") return "more"
    if (!rest.startsWith("\r\n")) return "unusual"
    if (rest.length > 2) this.keepsAlive = false
    return "complete"
  }
}

/** The largest head of an answer, in bytes. */
export const maxHeaderBytes = 64 * 1024

/** The bytes received are not an HTTP answer to the request. */
class UnreadableAnswer extends Data.TaggedError("UnreadableAnswer")<{ readonly cause: string }> {}

/** Receives an answer. The methods must not throw. */
export interface AnswerReceiver {
  /** The head of the final answer; informational answers before it are skipped. */
  readonly onHead: (status: number, headers: IncomingHttpHeaders) => void
  readonly onBody: (bytes: number) => void
  /** Bytes of any kind were read. */
  readonly onRead: () => void
  readonly onComplete: () => void
  readonly onRefused: (error: unknown) => void
}

/**
 * An answer that is not plain: Node's own client parses it, from its first byte. It accepts what other common clients
 * accept (a bare line feed, a folded header, a length beside chunks), since the consumer has the event by then.
 *
 * The client gets a fake connection: its writes are discarded, since the request is already on the wire, and its reads
 * return the consumer's bytes. The real connection is not reused, so any bytes after the answer are ignored.
 */
export class StrictAnswer {
  readonly #receiver: AnswerReceiver
  readonly #request: ClientRequest
  #response: IncomingMessage | null = null
  readonly #connection = new Duplex({ read() {}, write: (_bytes, _encoding, done) => done() })

  constructor(receiver: AnswerReceiver) {
    this.#receiver = receiver
    this.#request = request({
      method: "POST",
      host: "consumer.invalid",
      createConnection: () => this.#connection,
      maxHeaderSize: maxHeaderBytes,
      insecureHTTPParser: true
    })
    this.#request
      .on("response", (response) => this.#readFinal(response))
      .on("upgrade", () => this.#refuse(new UnreadableAnswer({ cause: "another protocol, which nobody asked for" })))
      .on("error", (error) => this.#refuse(error))
      // After Node's own listener
      .on("socket", (connection) => connection.on("data", () => receiver.onRead()))
      .end()
  }

  /** Reads bytes, which must not change afterwards. */
  read(bytes: Uint8Array): void {
    if (!this.#connection.destroyed) this.#connection.push(bytes)
  }

  /** Signals that the consumer sends no more. */
  end(): void {
    if (!this.#connection.destroyed) this.#connection.push(null)
  }

  /** Signals that the connection broke. */
  break(error: Error): void {
    this.#connection.destroy(error)
  }

  giveUp(): void {
    this.#request.destroy()
    this.#connection.destroy()
  }

  #readFinal(response: IncomingMessage): void {
    const { headers, headersDistinct, httpVersionMajor, statusCode = 0 } = response
    // An empty `Transfer-Encoding` leaves the end of the body undefined; not all versions of the parser refuse it
    if (httpVersionMajor > 2 || headersDistinct["transfer-encoding"]?.includes("")) {
      this.#receiver.onRefused(new UnreadableAnswer({ cause: "a version or a framing that nobody has" }))
      return
    }
    this.#response = response
    this.#receiver.onHead(statusCode, headers)
    response
      .on("data", (bytes: Buffer) => this.#receiver.onBody(bytes.byteLength))
      .on("end", () => this.#receiver.onComplete())
      .on("error", (error) => this.#refuse(error))
  }

  /** Bytes after a complete answer are not its error; its end is reported separately. */
  #refuse(error: unknown): void {
    if (this.#response?.complete !== true) this.#receiver.onRefused(error)
  }
}

/** Called once with the outcome of an attempt, or with a defect of the transport; must not throw. */
type OutcomeReceiver = (outcome: Exit.Exit<AttemptOutcome>) => void

export interface ExchangeBounds {
  readonly deadlines: Deadlines
  readonly maxResponseBytes: number
}

/**
 * If a kept-alive connection closes within this time after a request, in milliseconds, the two are taken to have
 * crossed. Longer than any round trip.
 */
const crossingMillis = 1000

const write = (exchange: Exchange, connection: Connection): void => exchange.writeTo(connection)

/**
 * Writes a request on a kept-alive connection, which the consumer may already have closed unnoticed. The first immediate
 * after a socket event runs before the event loop polls the sockets, so this is the first of two.
 */
const writeAfterReading = (exchange: Exchange, connection: Connection): void => {
  setImmediate(write, exchange, connection)
}

/** One request and its answer. It ends once; later events are ignored. */
export class Exchange extends Expiring implements ConnectionUser, AnswerReceiver {
  readonly #origin: Origin
  readonly #bounds: ExchangeBounds
  #request: string
  readonly #receive: OutcomeReceiver
  readonly #startedAt = performance.now()
  #connection: Connection | null = null
  #written = false
  #writtenAt = 0
  #repeated = false
  #ended = false
  #plain: PlainAnswer | null = new PlainAnswer()
  #strict: StrictAnswer | null = null
  /** The answer so far, one character per byte, kept while it may still turn out not to be plain. */
  #text = ""
  #status: number | null = null
  #retryAfter: Duration.Duration | null = null
  #refused: AttemptErrorCode | undefined
  #bodyBytes = 0
  #bytes = 0

  constructor(origin: Origin, bounds: ExchangeBounds, request: string, receive: OutcomeReceiver) {
    super()
    this.#origin = origin
    this.#bounds = bounds
    this.#request = request
    this.#receive = receive
  }

  start(): void {
    this.#bounds.deadlines.add(this)
    this.#connect()
  }

  /** Ends the exchange as timed out. */
  expire(): void {
    this.#fail("timeout")
  }

  #connect(): void {
    const origin = this.#origin
    const { connections } = origin
    const connection = this.#repeated ? connections.create(origin, this) : connections.acquire(origin, this)
    this.#connection = connection
    if (connection.reused) setImmediate(writeAfterReading, this, connection)
    else connection.open()
  }

  onReady(): void {
    if (this.#connection !== null) this.writeTo(this.#connection)
  }

  /** Writes the request, unless the connection broke meanwhile and was replaced. */
  writeTo(connection: Connection): void {
    if (this.#ended || this.#written || this.#connection !== connection) return
    this.#written = true
    connection.write(this.#request)
    if (connection.reused) this.#writtenAt = performance.now()
    else this.#forgetRequest()
  }

  /** Frees the request once it can't be sent again: thousands of exchanges may be waiting for answers. */
  #forgetRequest(): void {
    this.#request = ""
  }

  onBytes(bytes: Buffer): void {
    if (!this.#written) {
      this.#connectAgain()
      return
    }
    if (this.#bytes === 0) this.#forgetRequest()
    this.#bytes += bytes.byteLength
    if (this.#strict !== null) this.#strict.read(Buffer.from(bytes))
    else this.#readPlain(bytes.toString("latin1"))
  }

  onEnd(): void {
    if (!this.#written) this.#connectAgain()
    else if (this.#mayRepeat()) this.#repeat()
    else if (this.#strict === null) this.#fail("connection_reset")
    else this.#strict.end()
  }

  onBroken(error: Error): void {
    // Nothing was sent, and the error is not one of connecting
    if (!this.#written && this.#connection?.reused === true && !(error instanceof ConnectError)) this.#connectAgain()
    else if (attemptErrorCode(error) === "connection_reset" && this.#mayRepeat()) this.#repeat()
    else if (this.#strict !== null) this.#strict.break(error)
    else this.onRefused(error)
  }

  /** Retries on another connection: the kept-alive one is unusable, and nothing was sent on it. */
  #connectAgain(): void {
    this.#discard()
    if (!this.#ended) this.#connect()
  }

  /**
   * Whether the request crossed with the close of a kept-alive connection, which a server may close at any time. Most
   * likely the server never read it. That can't be proved, but consumers must expect duplicates, and the next attempt
   * would send it anyway, half a minute later.
   */
  #mayRepeat(): boolean {
    const reused = this.#connection?.reused === true
    return reused && this.#bytes === 0 && performance.now() - this.#writtenAt < crossingMillis
  }

  /** Repeats once, on a new connection: other kept-alive connections may have been closed as well. */
  #repeat(): void {
    this.#repeated = true
    this.#written = false
    this.#connectAgain()
  }

  #readPlain(text: string): void {
    const plain = this.#plain
    if (plain === null) return
    const reading = plain.read(text)
    if (reading === "unusual") {
      this.#readStrictly(this.#text + text)
      return
    }
    if (this.#status === null && plain.status !== null) {
      this.#note(plain.status, plain.retryAfter, plain.refused)
    }
    this.#bodyBytes = plain.bodyBytes
    if (this.#bodyBytes > this.#bounds.maxResponseBytes) this.#cutOff()
    else if (reading === "complete") this.#end(statusErrorCode(this.#status), plain)
    else {
      if (plain.isSettled) this.#text = ""
      else this.#text += text
      this.#checkSize()
    }
  }

  #readStrictly(text: string): void {
    this.#plain = null
    this.#text = ""
    this.#bodyBytes = 0
    this.#strict = new StrictAnswer(this)
    this.#strict.read(Buffer.from(text, "latin1"))
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    this.#note(status, headers["retry-after"], headers[refusedHeader])
  }

  onBody(bytes: number): void {
    this.#bodyBytes += bytes
    if (this.#bodyBytes > this.#bounds.maxResponseBytes) this.#cutOff()
  }

  onRead(): void {
    this.#checkSize()
  }

  onComplete(): void {
    this.#end(statusErrorCode(this.#status))
  }

  onRefused(error: unknown): void {
    const code = attemptErrorCode(error)
    if (error instanceof TransportBug) this.#end(error)
    else if (code === "response_too_large") this.#cutOff()
    else this.#fail(code)
  }

  #note(status: number, retryAfter: unknown, refused: unknown): void {
    this.#status = status
    if ((status === 429 || status === 503) && typeof retryAfter === "string") {
      this.#retryAfter = parseRetryAfter(retryAfter, new Date())
    }
    if (status >= 400 && status < 500) this.#refused = refusedCode(refused)
  }

  // Counts all bytes, including those outside a body: chunk extensions, endless informational answers
  #checkSize(): void {
    if (this.#bytes > this.#bounds.maxResponseBytes + maxHeaderBytes) this.#cutOff()
  }

  /** Ends an exchange whose answer is too long: its status, if known, decides. */
  #cutOff(): void {
    this.#end(this.#status === null ? "response_too_large" : statusErrorCode(this.#status))
  }

  /** Ends an exchange that broke off. A failure status is kept; a 2xx counts only once the answer is complete. */
  #fail(errorCode: AttemptErrorCode): void {
    if (this.#ended) return
    const byStatus = this.#status === null ? null : statusErrorCode(this.#status)
    if (byStatus === null) this.#status = null
    this.#end(byStatus ?? errorCode)
  }

  /** Ends the exchange once. The connection is closed unless the `plain` answer left it reusable. */
  #end(code: AttemptErrorCode | TransportBug | null, plain: PlainAnswer | null = null): void {
    if (this.#ended) return
    this.#ended = true
    this.#bounds.deadlines.delete(this)
    const connection = this.#connection
    if (plain?.keepsAlive === true && connection?.isWritten === true) {
      this.#origin.connections.release(connection, plain.keepAliveSeconds)
    } else this.#discard()
    this.#receive(code instanceof TransportBug ? Exit.die(code) : Exit.succeed(this.#outcome(code)))
  }

  #discard(): void {
    if (this.#connection !== null) this.#origin.connections.discard(this.#connection)
    this.#strict?.giveUp()
  }

  #outcome(code: AttemptErrorCode | null): AttemptOutcome {
    const durationMs = Math.round(performance.now() - this.#startedAt)
    const errorCode = code === "http_error" ? (this.#refused ?? code) : code
    return { httpStatus: this.#status, errorCode, durationMs, retryAfter: this.#retryAfter }
  }
}

/** The error code of a complete answer (contract 9.1): only 2xx is a success, and 3xx is not followed. */
const statusErrorCode = (status: number | null): AttemptErrorCode | null => {
  if (status === null) return "network_error"
  if (status >= 200 && status < 300) return null
  return status >= 300 && status < 400 ? "redirect_refused" : "http_error"
}
