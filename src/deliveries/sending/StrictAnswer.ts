/**
 * Reads the answers that are not plain: Node's own client parses them, from their first byte. It accepts what other
 * common clients accept (a bare line feed, a folded header, a length beside chunks), since the consumer has the event
 * by then.
 *
 * The client gets a fake connection: its writes are discarded, since the request is already on the wire, and its reads
 * return the consumer's bytes. The real connection is not reused, so any bytes after the answer are ignored.
 */
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http"
import { Duplex } from "node:stream"
import { UnreadableAnswer } from "./TransportError.ts"

/** The largest head of an answer, in bytes. */
export const maxHeaderBytes = 64 * 1024

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

/** One answer, parsed by Node. */
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
