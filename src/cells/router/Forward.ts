import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import { PassThrough } from "node:stream"
import type { Dispatcher } from "undici"
import { hasErrorCode } from "../../errors/ErrorCode.ts"
import { bodyRefused, type UnreadableRequest } from "../../kit/Body.ts"
import type { TrustedProxies } from "../../settings/Forms.ts"
import { requestHeaders, responseHeaders } from "./Headers.ts"
import type { Routed } from "./RouterTelemetry.ts"
import type { UnderWay, Upstream } from "./Upstreams.ts"

/**
 * Passes a request to a cell and its answer back, both as they come: what one side does not take, the other side does
 * not send. The request line is passed on byte for byte; lengths are declared anew, so that no two readers can disagree
 * about where a body ends.
 */

/** How an exchange with a cell ended before anything was answered. */
export type Unanswered =
  /** It could not be connected to: it has not seen the request. */
  | "unreached"
  /** The connection was lost, or the answer did not begin in time. */
  | "lost"
  /** The request can't be sent on. */
  | "unsendable"
  /** The client left. */
  | "left"
  /** The rest of the client's body will not come. */
  | UnreadableRequest

/** A request to pass on. */
export interface Passing {
  readonly routed: Routed
  /** The client's network, for its share of what may be under way to a cell. */
  readonly network: string
  /** The body, if it was read already; null for none. Otherwise it is passed on as it comes. */
  readonly body?: Buffer | null
  readonly trustedProxies: TrustedProxies
  /** Whether an answer of this status is kept from the client: another cell is asked. */
  readonly isDeclined?: (status: number) => boolean
}

const unreachedCodes: ReadonlyArray<string> = [
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT"
]

const isUnreached = (error: unknown): boolean =>
  hasErrorCode(error, ...unreachedCodes) ||
  (error instanceof AggregateError && error.errors.every((one) => hasErrorCode(one, ...unreachedCodes)))

/** Whether a request announces a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0"

/** Writes a cell's answer to the client as it comes. */
class Answering implements Dispatcher.DispatchHandler {
  readonly #passing: Passing
  readonly #finish: (ended: Unanswered | number) => void
  readonly #underWay: UnderWay
  readonly #onRefused: (error: UnreadableRequest) => void
  readonly #onClosed: () => void
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #isDeclined = false
  #isAborted = false
  #refusal: UnreadableRequest | undefined

  constructor(passing: Passing, upstream: Upstream, finish: (ended: Unanswered | number) => void) {
    this.#passing = passing
    this.#finish = finish
    this.#underWay = upstream.begin(passing.network, () => this.#abort("The cell stands still"))
    this.#onClosed = () => {
      if (!passing.routed.response.writableFinished) this.#abort("The client has left")
    }
    this.#onRefused = (error) => {
      this.#refusal = error
      this.#abort("The rest of the body will not come")
    }
    passing.routed.response.once("close", this.#onClosed)
    // A body that was read already has been refused where it was read
    if (passing.body === undefined) passing.routed.request.once(bodyRefused, this.#onRefused)
  }

  #abort(reason: string): void {
    this.#isAborted = true
    this.#controller?.abort(new Error(reason))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isAborted || this.#passing.routed.response.destroyed) this.#abort("Nobody waits for it any longer")
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusMessage?: string
  ): void {
    // The server has confirmed an expectation itself, and nothing here uses the other interim answers
    if (status < 200) return
    this.#underWay.answered()
    const { isDeclined, routed } = this.#passing
    const { request, response } = routed
    this.#status = status
    this.#isDeclined = isDeclined?.(status) === true
    if (this.#isDeclined || response.destroyed) return
    const passed = responseHeaders(headers)
    routed.requestId = [headers["request-id"] ?? []].flat()[0]
    // What the client still sends would be taken for its next request
    if (!request.complete && !response.hasHeader("connection")) passed["connection"] = "close"
    response.writeHead(status, statusMessage ?? "", passed)
    // An answer without a length may pause before its first part, as a stream of events does
    if (headers["content-length"] === undefined) response.flushHeaders()
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { response } = this.#passing.routed
    if (this.#isDeclined || response.destroyed) return
    if (!response.write(chunk)) {
      controller.pause()
      response.once("drain", () => controller.resume())
    }
  }

  onResponseEnd(): void {
    this.#end(this.#status)
    if (!this.#isDeclined) this.#passing.routed.response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    const { response } = this.#passing.routed
    if (response.headersSent) {
      // The client must see that the answer is not complete
      response.destroy()
      this.#end(this.#status)
    } else if (this.#refusal !== undefined) {
      this.#end(this.#refusal)
    } else if (response.destroyed) {
      this.#end("left")
    } else if (isUnreached(error)) {
      this.#end("unreached")
    } else {
      this.#end(hasErrorCode(error, "UND_ERR_INVALID_ARG") ? "unsendable" : "lost")
    }
  }

  #end(ended: Unanswered | number): void {
    const { request, response } = this.#passing.routed
    response.off("close", this.#onClosed)
    request.off(bodyRefused, this.#onRefused)
    this.#underWay.ended()
    this.#finish(ended)
  }
}

/** The body as it comes. Apart from the request, so that a failure towards the cell leaves the client's connection open. */
const streamOf = (request: IncomingMessage): PassThrough => {
  const stream = new PassThrough()
  request.pipe(stream)
  // A client that leaves in the middle ends the exchange: what it has sent is not a whole request
  request.once("close", () => {
    if (!request.complete) stream.destroy(new Error("The client has left"))
  })
  stream.once("close", () => {
    if (request.complete) return
    request.unpipe(stream)
    request.resume()
  })
  // The exchange reports it
  stream.on("error", () => {})
  return stream
}

/**
 * Passes a request on. Resolves when the cell's answer has ended, with its status, or with the reason why there is none;
 * then nothing has been answered. Never rejects.
 */
export const forward = (upstream: Upstream, passing: Passing): Promise<Unanswered | number> =>
  new Promise((resolve) => {
    const { body, routed, trustedProxies } = passing
    const { request } = routed
    routed.cell = upstream.cell.name
    const handler = new Answering(passing, upstream, (result) => {
      if (result === "unreached") upstream.noteAway()
      resolve(result)
    })
    const headers = requestHeaders(request, trustedProxies, routed.traceparent)
    const length = request.headers["content-length"]
    const isStreamed = body === undefined && hasBody(request)
    if (isStreamed && length !== undefined) headers.push("content-length", length)
    const target = request.url ?? "/"
    try {
      upstream.pool.dispatch(
        {
          path: target.startsWith("/") ? target : target.replace(/^https?:\/\/.*?\//, "/"),
          // Any method that Node's parser knows; undici's type lists a few
          method: (request.method ?? "GET") as Dispatcher.HttpMethod,
          headers,
          body: isStreamed ? streamOf(request) : (body ?? null)
        },
        handler
      )
    } catch (error) {
      handler.onResponseError(undefined, error instanceof Error ? error : new Error(String(error)))
    }
  })
