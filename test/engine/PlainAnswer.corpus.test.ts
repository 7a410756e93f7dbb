import { request } from "node:http"
import { Socket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Client } from "undici"
import { type AnswerReceiver, PlainAnswer, StrictAnswer } from "../../src/engine/transport/Exchange.ts"
import { casesOf } from "../harness/Corpus.ts"
import { OddAnswers } from "./OddAnswers.ts"
import { post, tcpConsumer, transport } from "./TransportServers.ts"

/** What becomes of the bytes of an answer, at whose end the consumer closes. */
type Judgement =
  | { readonly refused: true }
  | { readonly refused: false; readonly status: number; readonly body: number }

const refused: Judgement = { refused: true }

const accepted = (status: number, body: number): Judgement => ({ refused: false, status, body })

/** A connection that has what came on another. What is written to it is discarded. */
class Replayed extends Socket {
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

const later = () => new Promise<void>((resolve) => setImmediate(resolve))

const letThrough = async (socket: Replayed, pieces: ReadonlyArray<Buffer>) => {
  for (const piece of pieces) {
    socket.come(piece)
    if (pieces.length > 1) await later()
  }
}

/** Judged by undici. `early`: before the consumer closed. `kept`: undici would use the connection again. */
const byUndici = async (pieces: ReadonlyArray<Buffer>) => {
  const socket = new Replayed()
  let judgement: Judgement | undefined
  let [status, body] = [0, 0]
  const client = new Client("http://consumer.invalid", {
    connect: (_, callback) => queueMicrotask(() => callback(null, socket)),
    maxHeaderSize: 16 * 1024,
    headersTimeout: 0,
    bodyTimeout: 0
  })
  const end = (how: Judgement) => {
    judgement ??= how
  }
  client.dispatch(
    { method: "POST", path: "/" },
    {
      onRequestStart() {},
      onResponseStart(_, code, headers) {
        status = code
        // This our reader refuses by itself
        if ([headers["transfer-encoding"]].flat().includes("")) end(refused)
      },
      onResponseData(_, chunk) {
        body += chunk.byteLength
      },
      onResponseEnd: () => end(accepted(status, body)),
      onResponseError: () => end(refused)
    }
  )
  await letThrough(socket, pieces)
  await later()
  const early = judgement
  const kept = early?.refused === false && !socket.destroyed
  socket.come(null)
  for (let turn = 0; judgement === undefined && turn < 10; turn++) await later()
  client.destroy().catch(() => {})
  return { judgement: judgement ?? refused, early, kept }
}

/** Judged by Node's own client. */
const byNode = async (pieces: ReadonlyArray<Buffer>) => {
  const socket = new Replayed()
  let judgement: Judgement | undefined
  const end = (how: Judgement) => {
    judgement ??= how
  }
  const exchange = request({
    method: "POST",
    host: "consumer.invalid",
    createConnection: () => socket,
    maxHeaderSize: 16 * 1024
  })
  let complete = () => false
  // Bytes after the end are an error of the request, too, though its answer is there
  const failed = () => complete() || end(refused)
  exchange.on("error", failed)
  exchange.on("close", failed)
  exchange.on("response", (response) => {
    // See above
    if (response.headersDistinct["transfer-encoding"]?.includes("")) end(refused)
    complete = () => response.complete
    let body = 0
    response.on("data", (chunk: Buffer) => {
      body += chunk.length
    })
    response.on("error", failed)
    response.on("end", () => end(response.complete ? accepted(response.statusCode ?? 0, body) : refused))
  })
  exchange.end()
  await later()
  await letThrough(socket, pieces)
  await later()
  socket.come(null)
  for (let turn = 0; judgement === undefined && turn < 10; turn++) await later()
  exchange.destroy()
  return judgement ?? refused
}

/** Judged by the reader of answers that are not plain. */
const byStrict = async (pieces: ReadonlyArray<Buffer>) => {
  let judgement: Judgement | undefined
  let [status, body] = [0, 0]
  const receiver: AnswerReceiver = {
    onHead: (code) => {
      status = code
    },
    onBody: (bytes) => {
      body += bytes
    },
    onRead: () => {},
    onComplete: () => {
      judgement ??= accepted(status, body)
    },
    onRefused: () => {
      judgement ??= refused
    }
  }
  const answer = new StrictAnswer(receiver)
  for (const piece of pieces) {
    answer.read(piece)
    if (pieces.length > 1) await later()
  }
  await later()
  answer.end()
  for (let turn = 0; judgement === undefined && turn < 10; turn++) await later()
  answer.giveUp()
  return judgement ?? refused
}

/** Judged by the reader of plain answers. */
const byPlain = (pieces: ReadonlyArray<Buffer>) => {
  const answer = new PlainAnswer()
  for (const [index, piece] of pieces.entries()) {
    const reading = answer.read(piece.toString("latin1"))
    if (reading !== "more") return { reading, answer, leftOver: index < pieces.length - 1 }
  }
  return { reading: "more" as const, answer, leftOver: false }
}

/**
 * Whether versions of the parser differ about it, of which Node and undici each have their own: a line break that is only
 * half one, and which bytes of a head count for its length. The connection closes after such an answer in any case.
 */
const isVersionsMatter = (pieces: ReadonlyArray<Buffer>) =>
  pieces.reduce((sum, { length }) => sum + length, 0) > 8192 ||
  /\r(?!\n)/.test(pieces.map((piece) => piece.toString("latin1")).join(""))

/** If the same length is said twice, most clients take the answer, but not these two. */
const saysLengthTwice = (pieces: ReadonlyArray<Buffer>) => {
  const [head = ""] = Buffer.concat(pieces).toString("latin1").split("\r\n\r\n")
  return (head.match(/\r\ncontent-length:/gi)?.length ?? 0) > 1
}

const shown = (pieces: ReadonlyArray<Buffer>) => pieces.map((piece) => piece.toString("latin1").slice(0, 300))

/** A hundred thousand and more are judged with `ODD_ANSWERS=100000`. */
const answers = Number(process.env["ODD_ANSWERS"] ?? casesOf(20_000))
const atOnce = 100

/** Beside those that are not plain, which only the judges differ about: then one in so many is enough. */
const someUnusual = answers > 20_000 ? 1 : 10

describe("an answer, however it is mangled and cut into pieces", () => {
  it(`is taken for plain only if undici and Node read the same in it (${answers})`, { timeout: 600_000 }, async () => {
    const odd = new OddAnswers(20_261_122)
    const found = { complete: 0, kept: 0, more: 0, unusual: 0, judged: 0 }
    const judge = async (number: number) => {
      const pieces = odd.next()
      const { answer, leftOver, reading } = byPlain(pieces)
      found[reading] += 1
      if (reading === "unusual" && number % someUnusual !== 0) return
      found.judged += 1
      const [undici, node] = await Promise.all([byUndici(pieces), byNode(pieces)])
      const context = JSON.stringify(shown(pieces))
      if (saysLengthTwice(pieces)) {
        expect(reading === "complete" && answer.keepsAlive, context).toBe(false)
      } else if (reading === "complete") {
        const plain = accepted(answer.status ?? 0, answer.bodyBytes)
        expect({ undici: undici.judgement, node }, context).toEqual({ undici: plain, node: plain })
        // undici gives a connection up two seconds before the consumer does, and so does ours
        const keeps = answer.keepsAlive && !leftOver && (answer.keepAliveSeconds ?? 5) > 2
        if (keeps) found.kept += 1
        if (keeps) expect(undici.kept, context).toBe(true)
      } else if (reading === "more") {
        // Not even refused yet, and not accepted when no more comes
        expect({ early: undici.early, undici: undici.judgement, node }, context).toEqual({
          undici: refused,
          node: refused
        })
      } else {
        // Our reader takes more than those two do, but what they take, it reads in the same way
        const ours = await byStrict(pieces)
        if (!node.refused) expect(ours, context).toEqual(node)
        if (!undici.judgement.refused && !isVersionsMatter(pieces)) expect(ours, context).toEqual(undici.judgement)
      }
    }
    for (let done = 0; done < answers; done += atOnce) {
      await Promise.all(Array.from({ length: atOnce }, (_, index) => judge(done + index)))
    }
    // Enough of each kind was there to be judged
    expect(found.complete).toBeGreaterThan(answers / 10)
    expect(found.kept).toBeGreaterThan(answers / 20)
    expect(found.more).toBeGreaterThan(answers / 50)
    expect(found.unusual).toBeGreaterThan(answers / 2)
    expect(found.judged).toBeGreaterThan(answers / 10)
  })

  it.scopedLive("has the outcome that its reader gives it", () =>
    Effect.gen(function* () {
      const odd = new OddAnswers(20_261_123)
      const given: Array<ReadonlyArray<Buffer>> = []
      const consumer = yield* tcpConsumer((socket) => {
        socket.once("data", (request) => {
          const [, index] = /^POST \/([0-9]+) /.exec(request.toString("latin1")) ?? []
          void (async () => {
            for (const piece of given[Number(index)] ?? []) {
              socket.write(piece)
              await later()
            }
            socket.end()
          })()
        })
      })
      const compare = (index: number) =>
        Effect.gen(function* () {
          const pieces = odd.next()
          // Depends on the pieces in which the head is received
          if (saysLengthTwice(pieces)) return
          given[index] = pieces
          const outcome = yield* post(`http://127.0.0.1:${consumer.port}/${index}`)
          const { answer, reading } = byPlain(pieces)
          const judgement =
            reading === "complete" ? accepted(answer.status ?? 0, 0) : yield* Effect.promise(() => byStrict(pieces))
          const context = JSON.stringify([shown(pieces), outcome])
          if (judgement.refused) expect(outcome.errorCode, context).not.toBeNull()
          else expect(outcome.httpStatus, context).toBe(judgement.status)
        })
      yield* Effect.forEach(
        Array.from({ length: 200 }, (_, index) => index),
        compare,
        { concurrency: 10 }
      )
    }).pipe(Effect.provide(transport({ timeout: "50 seconds", idleConnectionsPerOrigin: 0 })))
  )
})
