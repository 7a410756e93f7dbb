import { Utils } from "effect"
import { recorded } from "../servers/Servers.ts"

/** Answers as consumers give them, and what may become of them: mangled in all the ways that parsers are known to differ in. */

const crlf = "\r\n"

const answer = (status: string, headers: ReadonlyArray<string>, body = ""): string =>
  [`HTTP/1.1 ${status}`, ...headers, "", body].join(crlf)

/** As common servers answer: what real ones sent, and what others are known to. */
const usual: ReadonlyArray<string> = [
  ...Object.values(recorded).flatMap(({ closed, reused }) => [...Object.values(reused), ...Object.values(closed)]),
  answer("202 Accepted", ["Server: nginx", "Content-Length: 11", "Connection: close"], "hello world"),
  answer("200 OK", ["Upgrade: h2,h2c", "Connection: Upgrade, Keep-Alive", "Content-Length: 2"], "OK"),
  answer("302 Found", ["Location: https://example.com/", "Content-Length: 0"]),
  answer("304 Not Modified", ["ETag: x"]),
  answer("400 Bad Request", ["Service-Refused: time", "Content-Length: 5"], "stale"),
  answer("429 Too Many Requests", ["Retry-After: 120", "Content-Length: 0"]),
  answer("503 Service Unavailable", ["Retry-After: 7", "Transfer-Encoding: chunked"], "2\r\nno\r\n0\r\n\r\n"),
  answer("500 Internal Server Error", ["Connection: close"], "Traceback (most recent call last)"),
  "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nOK",
  "HTTP/1.0 200 OK\r\n\r\nOK"
]

const oddHeaders: ReadonlyArray<string> = [
  "Content-Length: 2",
  "Content-Length: 5",
  "Content-Length: 05",
  "Content-Length: +5",
  "Content-Length: -5",
  "Content-Length: 0x5",
  "Content-Length: 5, 5",
  "Content-Length: 5 5",
  "Content-Length: 5\t",
  "Content-Length:\t5",
  "Content-Length:",
  "Content-Length: five",
  "Content-Length : 5",
  "Content-Length: 999999999",
  "Content-Length: 9007199254740993",
  "Content-Length: 99999999999999999999999",
  "content-length: 0",
  "Transfer-Encoding: chunked",
  "transfer-encoding: CHUNKED",
  "Transfer-Encoding: chunked ",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: chunked, chunked",
  "Transfer-Encoding: chunked, identity",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: xchunked",
  "Transfer-Encoding:",
  "Transfer-Encoding : chunked",
  "Connection: close",
  "Connection: keep-alive",
  "Connection: keep-alive, close",
  "Connection: Upgrade",
  "Connection:",
  "Proxy-Connection: close",
  "Upgrade: h2c",
  "Keep-Alive: timeout=5, max=100",
  "Keep-Alive: timeout=1",
  "Keep-Alive: max=100",
  "Retry-After: 5",
  "Service-Refused: time",
  "Trailer: Expires",
  " folded: value",
  "\tfolded",
  "no colon",
  ": no name",
  "x",
  "x y: z",
  "x:",
  "x:y",
  "x: \u0000",
  "x: \u007f",
  "x: \u00e9",
  "\u00e9: x",
  "x: a\rb",
  "x: a\nb",
  "x\u0000: y",
  "x: \t y \t ",
  `x: ${"y".repeat(9000)}`,
  `x: ${"y".repeat(17_000)}`,
  `x: ${" ".repeat(3000)}y`
]

const statusLines: ReadonlyArray<string> = [
  "HTTP/1.1 200",
  "HTTP/1.1 200 ",
  "HTTP/1.1  200 OK",
  "HTTP/1.1 099 Low",
  "HTTP/1.1 199 Early",
  "HTTP/1.1 205 Reset Content",
  "HTTP/1.1 600 High",
  "HTTP/1.1 999 High",
  "HTTP/1.1 20 OK",
  "HTTP/1.1 2000 OK",
  "HTTP/1.1 2OO OK",
  "HTTP/1.1 -200 OK",
  "HTTP/1.1 200\tOK",
  "HTTP/1.1 200 O\u0000K",
  "HTTP/1.1 200 \u00e9t\u00e9",
  "HTTP/1.1 101 Switching Protocols",
  "HTTP/1.0 200 OK",
  "HTTP/0.9 200 OK",
  "HTTP/1.2 200 OK",
  "HTTP/2 200",
  "HTTP/2.0 200 OK",
  "HTTP/11 200 OK",
  "http/1.1 200 OK",
  "HTTP /1.1 200 OK",
  "ICY 200 OK",
  "HTTPS/1.1 200 OK",
  " HTTP/1.1 200 OK",
  "\r\nHTTP/1.1 200 OK",
  "PRI * HTTP/2.0",
  "POST / HTTP/1.1",
  ""
]

const chunkSizes: ReadonlyArray<string> = [
  "5;a=b",
  "5 ;a=b",
  "5 ",
  " 5",
  "+5",
  "-5",
  "0x5",
  "05",
  "0000005",
  "00000000000000005",
  "5G",
  "",
  "0",
  "ffffffffffffffff",
  "fffffffffffffffff",
  "5\n",
  "5\r",
  "5\u0000",
  "A",
  "a"
]

const before: ReadonlyArray<string> = [
  "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n",
  "HTTP/1.1 102 Processing\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n",
  "HTTP/1.1 204 No Content\r\n\r\n",
  "\r\n",
  "\n",
  " ",
  "\u0000",
  "\u0016\u0003\u0001"
]

const after: ReadonlyArray<string> = [
  "\r\n",
  "\n",
  "x",
  "0\r\n\r\n",
  "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 200 OK\r\n",
  "Expires: never\r\n\r\n",
  "\u0000".repeat(100)
]

const bytes: ReadonlyArray<string> = [
  ...'\u0000\u0001\t\n\r "(),/:;=\u007f\u0080\u00ff',
  ..."0159afAFzZ",
  crlf,
  crlf + crlf
]

/** Answers drawn from a seed: the same seed gives the same ones. */
export class OddAnswers {
  readonly #numbers: Utils.PCGRandom

  constructor(seed: number) {
    this.#numbers = new Utils.PCGRandom(seed)
  }

  /** The next one, in the pieces in which it arrives. One in eight is as a server gives it. */
  next(): ReadonlyArray<Buffer> {
    let text = this.#oneOf(usual)
    const changes = this.#below(8) === 0 ? 0 : 1 + this.#below(3)
    for (let change = 0; change < changes; change++) text = this.#changed(text)
    return this.#inPieces(Buffer.from(text, "latin1"))
  }

  #below(bound: number): number {
    return this.#numbers.integer(bound)
  }

  #oneOf<A>(items: ReadonlyArray<A>): A {
    const item = items[this.#below(items.length)]
    if (item === undefined) throw new Error("there is none")
    return item
  }

  #changed(text: string): string {
    const lines = text.split(crlf)
    const line = this.#below(lines.length)
    const at = this.#below(text.length + 1)
    switch (this.#below(14)) {
      case 0:
        return lines.with(0, this.#oneOf(statusLines)).join(crlf)
      case 1:
      case 2:
      case 3:
        return lines.toSpliced(1, 0, this.#oneOf(oddHeaders)).join(crlf)
      case 4:
        return lines.toSpliced(line, 1).join(crlf)
      case 5:
        return lines.toSpliced(line, 0, lines[line] ?? "").join(crlf)
      case 6:
        return lines.with(line, this.#oneOf(chunkSizes)).join(crlf)
      case 7:
        return this.#oneOf(before) + text
      case 8:
        return text + this.#oneOf(after)
      case 9:
        return text.slice(0, at)
      case 10:
        return text.slice(0, at) + this.#oneOf(bytes) + text.slice(at)
      case 11:
        return text.slice(0, at) + this.#oneOf(bytes) + text.slice(at + 1)
      case 12:
        return text.slice(0, at) + text.slice(at + 1 + this.#below(4))
      default:
        return this.#below(2) === 0
          ? text.replaceAll(crlf, "\n")
          : `${lines.slice(0, line + 1).join(crlf)}\n${lines.slice(line + 1).join(crlf)}`
    }
  }

  #inPieces(whole: Buffer): ReadonlyArray<Buffer> {
    const cuts = this.#below(3) === 0 ? 0 : this.#below(4)
    // Now and then byte by byte
    const places =
      this.#below(40) === 0 && whole.length < 500
        ? whole.keys()
        : Array.from({ length: cuts }, () => this.#below(whole.length + 1))
    const pieces: Array<Buffer> = []
    let from = 0
    for (const to of [...places, whole.length].toSorted((one, other) => one - other)) {
      if (to > from) pieces.push(whole.subarray(from, to))
      from = Math.max(from, to)
    }
    return pieces
  }
}
