import { Effect } from "effect"
import { describe, expect, it, layer } from "../harness/Tests.ts"
import { recorded } from "../servers/Servers.ts"
import { post, rawConsumer, transport, until } from "./TransportServers.ts"

/**
 * Answers as servers and proxies in use give them. The event has arrived by then, so what curl, Go, Python and Node take for
 * an answer counts here as well.
 */

const head = (status: string, ...headers: ReadonlyArray<string>): string =>
  [`HTTP/1.1 ${status}`, ...headers, "", ""].join("\r\n")

const plainOk = `${head("200 OK", "Content-Length: 2")}ok`
const chunkedOk = "2\r\nok\r\n0\r\n\r\n"
const cookies = (kilobytes: number) =>
  Array.from({ length: kilobytes }, (_, index) => `Set-Cookie: session${index}=${"x".repeat(980)}; Path=/`)

interface Odd {
  readonly what: string
  readonly answer: string
  /** By default 200. */
  readonly status?: number
  /** Whether the consumer closes after it. */
  readonly closes?: boolean
}

const odd: ReadonlyArray<Odd> = [
  ...[false, true]
    .flatMap((closes) => [
      { what: "204 with a length and a body", answer: `${head("204 No Content", "Content-Length: 4")}null`, closes },
      { what: "204 with a length", answer: head("204 No Content", "Content-Length: 4"), closes },
      { what: "204 in chunks", answer: `${head("204 No Content", "Transfer-Encoding: chunked")}0\r\n\r\n`, closes },
      { what: "204 that announces chunks", answer: head("204 No Content", "Transfer-Encoding: chunked"), closes }
    ])
    .map((one) => ({ ...one, status: 204 })),
  {
    what: "204 with two lengths",
    answer: head("204 No Content", "Content-Length: 0", "Content-Length: 0"),
    status: 204
  },
  { what: "205 with a length", answer: head("205 Reset Content", "Content-Length: 0"), status: 205 },
  { what: "100 before it", answer: head("100 Continue") + plainOk },
  { what: "100 with a length before it", answer: head("100 Continue", "Content-Length: 0") + plainOk },
  { what: "100 twice before it", answer: head("100 Continue").repeat(2) + plainOk },
  { what: "100 before 204", answer: head("100 Continue", "Server: x") + head("204 No Content"), status: 204 },
  { what: "102 before it", answer: head("102 Processing") + plainOk },
  { what: "103 before it", answer: head("103 Early Hints", "Link: </a>; rel=preload") + plainOk },
  { what: "100 and 103 before it", answer: head("100 Continue") + head("103 Early Hints") + plainOk },
  { what: "20 kB of cookies", answer: `${head("200 OK", ...cookies(20), "Content-Length: 2")}ok` },
  { what: "60 kB of cookies", answer: `${head("200 OK", ...cookies(60), "Content-Length: 2")}ok` },
  {
    what: "a policy of 20 kB",
    answer: `${head("200 OK", `Content-Security-Policy: ${"a ".repeat(10_000)}`, "Content-Length: 2")}ok`
  },
  { what: "20 kB of cookies with 204", answer: head("204 No Content", ...cookies(20)), status: 204 },
  { what: "the same length twice", answer: `${head("200 OK", "Content-Length: 2", "Content-Length: 2")}ok` },
  {
    what: "a length and chunks",
    answer: `${head("200 OK", "Content-Length: 2", "Transfer-Encoding: chunked")}${chunkedOk}`
  },
  {
    what: "chunks, said twice",
    answer: `${head("200 OK", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked")}${chunkedOk}`
  },
  {
    what: "chunks with an extension, a padded size and a trailer",
    answer: `${head("200 OK", "Transfer-Encoding: chunked")}2;a=b\r\nok\r\n0  \r\nExpires: never\r\n\r\n`
  },
  {
    what: "identity as its coding",
    answer: `${head("200 OK", "Transfer-Encoding: identity", "Content-Length: 2")}ok`,
    closes: true
  },
  { what: "a length of characters, not of bytes", answer: `${head("200 OK", "Content-Length: 2")}oké` },
  { what: "more after its end", answer: `${plainOk}\r\n<!-- served by x -->` },
  { what: "a second answer", answer: plainOk + head("500 Oops") },
  { what: "no length", answer: `${head("200 OK")}ok`, closes: true },
  { what: "no reason", answer: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok" },
  { what: "a reason beyond ASCII", answer: "HTTP/1.1 200 tr\u00e8s bien\r\nContent-Length: 2\r\n\r\nok" },
  { what: "a header beyond ASCII", answer: `${head("200 OK", "X: \u00e9", "Content-Length: 2")}ok` },
  { what: "a folded header", answer: `${head("200 OK", "X: a\r\n b", "Content-Length: 2")}ok` },
  { what: "a control character in a header", answer: `${head("200 OK", "X: a\u0001", "Content-Length: 2")}ok` },
  { what: "bare line feeds", answer: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok" },
  { what: "an empty line before it", answer: `\r\n${plainOk}` },
  { what: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\n\r\nok", closes: true },
  {
    what: "an offer of another protocol",
    answer: `${head("200 OK", "Upgrade: h2,h2c", "Connection: Upgrade", "Content-Length: 2")}ok`
  }
]

/** Of these alone the connection may be used again. */
const usualAfterAll = ["205 with a length", "an offer of another protocol"]

/** Sends two attempts to a consumer that answers with these bytes; how many connections it took, each closed but a reused one. */
const expectTwice = (answer: string, closes: boolean, status: number, connections: 1 | 2) =>
  Effect.gen(function* () {
    const consumer = yield* rawConsumer(Buffer.from(answer, "latin1"), closes)
    for (const path of ["/a", "/b"]) {
      const outcome = yield* post(`http://127.0.0.1:${consumer.port}${path}`)
      expect(outcome).toMatchObject({ httpStatus: status, errorCode: null })
    }
    expect(consumer.sockets).toHaveLength(connections)
    if (connections === 2) yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
  }).pipe(Effect.provide(transport()))

layer(transport())("an odd answer that is a success", (it) => {
  it.scoped.each(odd)(
    "counts, and leaves a connection that is not used again: $what (closes: $closes)",
    ({ answer, closes = false, status = 200, what }) =>
      expectTwice(answer, closes, status, usualAfterAll.includes(what) ? 1 : 2)
  )

  it.scoped("does not hide another status: 100 before 410 is 410", function* () {
    const consumer = yield* rawConsumer(head("100 Continue") + head("410 Gone", "Content-Length: 0"), false)
    const outcome = yield* post(`http://127.0.0.1:${consumer.port}/`)
    expect(outcome).toMatchObject({ httpStatus: 410, errorCode: "http_error" })
  })

  it.scoped("is none while it has only begun: 100 and then a close", function* () {
    const outcome = yield* post(`http://127.0.0.1:${(yield* rawConsumer(head("100 Continue"), true)).port}/`)
    expect(outcome).toMatchObject({ httpStatus: null, errorCode: "connection_reset" })
  })

  it.scoped("is none while it has only begun: 100 and then nothing", () =>
    Effect.gen(function* () {
      const outcome = yield* post(`http://127.0.0.1:${(yield* rawConsumer(head("100 Continue"), false)).port}/`)
      expect(outcome).toMatchObject({ httpStatus: null, errorCode: "timeout" })
    }).pipe(Effect.provide(transport({ timeout: "150 millis" })))
  )

  it.scoped("is refused if its head is larger than 64 KiB", function* () {
    const consumer = yield* rawConsumer(head("200 OK", ...cookies(70), "Content-Length: 0"), false)
    const outcome = yield* post(`http://127.0.0.1:${consumer.port}/`)
    expect(outcome).toMatchObject({ httpStatus: null, errorCode: "response_too_large" })
  })
})

describe("an answer as a real server sent it", () => {
  it.scopedLive.each(Object.entries(recorded))(
    "counts, and leaves a connection that is reused or not, as with the server itself: %s",
    ([, { closed, reused }]) =>
      Effect.forEach([...Object.entries(reused), ...Object.entries(closed)], ([path, answer]) => {
        const endsWithConnection = !/^(?:content-length|transfer-encoding):|^HTTP\S+ 204/im.test(answer)
        return expectTwice(answer, endsWithConnection, path.startsWith("/204") ? 204 : 200, path in reused ? 1 : 2)
      })
  )
})
