/**
 * Reads the answers that are not plain: undici's parser judges them, from their first byte.
 *
 * It gets a connection that it takes for the real one. What it writes on that is discarded, since the request is on the
 * wire already; what it reads are the bytes that came from the consumer. The real connection is not used again.
 */
import { Socket } from "node:net"
import { Client, type Dispatcher, errors } from "undici"
import { ConnectError } from "./TransportError.ts"

/** The largest header section of an answer, in bytes. */
export const maxHeaderBytes = 16 * 1024

/** The error of a reading that was given up. Made once: with one for each, undici would capture the stack every time. */
const givenUp = new errors.ClientDestroyedError()

const answeredOnce = new ConnectError({ errorCode: "connection_reset", cause: "there is one answer only" })

/** A connection that has what came on another. What is written to it is discarded. */
export class Replayed extends Socket {
  /** What came before undici has written its request; it would refuse an answer that precedes it. */
  #early: Array<Uint8Array | null> | null = []

  /** Some bytes came, or the end. */
  come(bytes: Uint8Array | null): void {
    if (this.destroyed) return
    if (this.#early === null) this.push(bytes)
    else this.#early.push(bytes)
  }

  #written(): void {
    const early = this.#early ?? []
    this.#early = null
    for (const bytes of early) this.push(bytes)
  }

  override _read(): void {}

  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    this.#written()
    done()
  }

  override _writev(_chunks: unknown, done: () => void): void {
    this.#written()
    done()
  }

  override _final(done: () => void): void {
    done()
  }
}

/** One answer, judged by undici. */
export class StrictAnswer {
  readonly #client: Client
  readonly #bytes = new Replayed()

  /** `onRead` is called each time undici has read what had come. */
  constructor(handler: Dispatcher.DispatchHandler, onRead: () => void) {
    let connected = false
    this.#client = new Client("http://consumer.invalid", {
      connect: (_, callback) =>
        queueMicrotask(() => {
          // Once only: the consumer has answered once
          if (connected) return callback(answeredOnce, null)
          connected = true
          callback(null, this.#bytes)
          // After undici's own listener
          this.#bytes.on("readable", onRead)
        }),
      // One request, and none of undici's own time-outs: the attempt's deadline covers them all
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: maxHeaderBytes
    })
    this.#client.dispatch({ method: "POST", path: "/" }, handler)
  }

  /** Some bytes came; they are not changed afterwards. */
  read(bytes: Uint8Array): void {
    this.#bytes.come(bytes)
  }

  /** The consumer sends no more. */
  end(): void {
    this.#bytes.come(null)
  }

  /** The connection broke. */
  break(error: Error): void {
    this.#bytes.destroy(error)
  }

  /** Reads no more, and reports no more. */
  giveUp(): void {
    this.#client.destroy(givenUp, () => {})
    this.#bytes.destroy()
  }
}
