/** One request and its answer, on one connection. */
import type { IncomingHttpHeaders } from "node:http"
import { performance } from "node:perf_hooks"
import type { Duration } from "effect"
import { refusedHeaderName } from "../../events/DeliveryHeaders.ts"
import { type AttemptErrorCode, type AttemptOutcome, refusedCode } from "../attempts/Attempt.ts"
import { parseRetryAfter } from "../queue/RetryPolicy.ts"
import { type AnswerReceiver, maxHeaderBytes, PlainAnswer, StrictAnswer } from "./Answers.ts"
import { type Deadlines, Expiring } from "./Deadlines.ts"
import type { Connection, Connections, ConnectionUser, Origin } from "./TransportConnections.ts"
import { attemptErrorCode, ConnectError, TransportBug } from "./TransportConnections.ts"

/** Receives the outcome of an attempt. Its methods must not throw. */
export interface OutcomeReceiver {
  readonly onOutcome: (outcome: AttemptOutcome) => void
  /** The request was impossible, or the transport has a bug. */
  readonly onDefect: (defect: unknown) => void
}

export interface ExchangeRoute {
  readonly connections: Connections
  readonly origin: Origin
}

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
  readonly #route: ExchangeRoute
  readonly #bounds: ExchangeBounds
  #request: string
  readonly #receiver: OutcomeReceiver
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

  /**
   * The parameters are not an object: V8 would come to put such objects into the old space, where each keeps its
   * references alive until a full garbage collection.
   */
  constructor(route: ExchangeRoute, bounds: ExchangeBounds, request: string, receiver: OutcomeReceiver) {
    super()
    this.#route = route
    this.#bounds = bounds
    this.#request = request
    this.#receiver = receiver
  }

  start(): void {
    this.#bounds.deadlines.add(this)
    this.#connect()
  }

  /** Aborts the exchange without an outcome: the attempt was interrupted. */
  abandon(): void {
    if (this.#end()) this.#discard()
  }

  /** Ends the exchange as timed out. */
  expire(): void {
    this.#fail("timeout")
  }

  #connect(): void {
    const { connections, origin } = this.#route
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
    else if (reading === "complete") this.#complete(plain)
    else {
      if (plain.isSettled) this.#text = ""
      else this.#text += text
      this.#checkSize()
    }
  }

  #complete({ keepAliveSeconds, keepsAlive }: PlainAnswer): void {
    const { connections } = this.#route
    const connection = this.#connection
    if (connection === null || !this.#end()) return
    if (keepsAlive && connection.isWritten) connections.release(connection, keepAliveSeconds)
    else connections.discard(connection)
    this.#answer(statusErrorCode(this.#status))
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
    if (!this.#end()) return
    this.#discard()
    this.#answer(statusErrorCode(this.#status))
  }

  onRefused(error: unknown): void {
    if (error instanceof TransportBug) {
      if (!this.#end()) return
      this.#discard()
      this.#receiver.onDefect(error)
      return
    }
    const code = attemptErrorCode(error)
    if (code === "response_too_large") this.#cutOff()
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
    if (!this.#end()) return
    this.#discard()
    this.#answer(this.#status === null ? "response_too_large" : statusErrorCode(this.#status))
  }

  /** Ends an exchange that broke off. A failure status is kept; a 2xx counts only once the answer is complete. */
  #fail(errorCode: AttemptErrorCode): void {
    if (!this.#end()) return
    this.#discard()
    const byStatus = this.#status === null ? null : statusErrorCode(this.#status)
    if (byStatus === null) this.#status = null
    this.#answer(byStatus ?? errorCode)
  }

  #end(): boolean {
    if (this.#ended) return false
    this.#ended = true
    this.#bounds.deadlines.delete(this)
    return true
  }

  #discard(): void {
    if (this.#connection !== null) this.#route.connections.discard(this.#connection)
    this.#strict?.giveUp()
  }

  #answer(code: AttemptErrorCode | null): void {
    const durationMs = Math.round(performance.now() - this.#startedAt)
    const errorCode = code === "http_error" ? (this.#refused ?? code) : code
    const outcome = { httpStatus: this.#status, errorCode, durationMs, retryAfter: this.#retryAfter }
    this.#receiver.onOutcome(outcome)
  }
}

/** The error code of a complete answer (contract 9.1): only 2xx is a success, and 3xx is not followed. */
const statusErrorCode = (status: number | null): AttemptErrorCode | null => {
  if (status === null) return "network_error"
  if (status >= 200 && status < 300) return null
  return status >= 300 && status < 400 ? "redirect_refused" : "http_error"
}
