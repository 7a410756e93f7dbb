/** One request and its answer, on one connection. */
import type { IncomingHttpHeaders } from "node:http"
import { performance } from "node:perf_hooks"
import { type Duration, Exit } from "effect"
import { refusedHeaderName } from "../../events/DeliveryHeaders.ts"
import { type AttemptErrorCode, type AttemptOutcome, refusedCode } from "../attempts/Attempt.ts"
import { parseRetryAfter } from "../queue/RetryPolicy.ts"
import { type AnswerReceiver, maxHeaderBytes, PlainAnswer, StrictAnswer } from "./Answers.ts"
import { type Deadlines, Expiring } from "./Deadlines.ts"
import type { Connection, ConnectionUser, Origin } from "./TransportConnections.ts"
import { attemptErrorCode, ConnectError, TransportBug } from "./TransportConnections.ts"

/** Called once with the outcome of an attempt, or with a defect of the transport; must not throw. */
type OutcomeReceiver = (outcome: Exit.Exit<AttemptOutcome>) => void

/** The bounds common to all exchanges. */
export interface ExchangeBounds {
  readonly deadlines: Deadlines
  readonly maxResponseBytes: number
}

/** In lower case, as Node reports header names. */
const refusedHeader = refusedHeaderName.toLowerCase()

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
