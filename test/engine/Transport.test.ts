import { gzipSync } from "node:zlib"
import { Duration, Effect, Exit, Fiber } from "effect"
import type { AttemptOutcome } from "../../src/engine/attempts/Outcome.ts"
import { Transport } from "../../src/engine/transport/Transport.ts"
import { describe, expect, it, layer } from "../harness/Tests.ts"
import { httpConsumer, post, rawConsumer, tcpConsumer, transport, until } from "./TransportServers.ts"

const answering = (status: number, headers: Record<string, string> = {}) =>
  httpConsumer((_, response) => response.writeHead(status, headers).end())

const postTo = ({ port }: { readonly port: number }) => post(`http://127.0.0.1:${port}/hook`)

const head = (status: string, ...headers: ReadonlyArray<string>): string =>
  [`HTTP/1.1 ${status}`, ...headers, "", ""].join("\r\n")

layer(transport())("what an answer comes to", (it) => {
  it.scoped.each([200, 201, 202, 204, 299])("%d is a success", function* (status) {
    const outcome = yield* postTo(yield* answering(status))
    expect(outcome).toMatchObject({ httpStatus: status, errorCode: null, retryAfter: null })
    expect(Number.isInteger(outcome.durationMs) && outcome.durationMs >= 0).toBe(true)
  })

  it.scoped.each([300, 301, 302, 303, 304, 307, 308])("%d is a redirect, refused and not followed", function* (status) {
    const other = yield* answering(200)
    const consumer = yield* answering(status, { location: `http://127.0.0.1:${other.port}/` })
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: status, errorCode: "redirect_refused" })
    expect(consumer.requests).toHaveLength(1)
    expect(other.sockets).toHaveLength(0)
  })

  it.scoped.each([400, 401, 404, 408, 410, 429, 500, 502, 503, 599])("%d is an error of HTTP", function* (status) {
    const consumer = yield* answering(status)
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: status, errorCode: "http_error", retryAfter: null })
    expect(consumer.requests).toHaveLength(1)
  })

  it.scoped.each<readonly [number, string, Duration.Duration | null]>([
    [429, "120", Duration.seconds(120)],
    [503, "120", Duration.seconds(120)],
    [500, "120", null],
    [200, "120", null],
    [429, "soon", null],
    [429, "-5", null],
    [429, "", null]
  ])("with %d, Retry-After: %j is reported as %s", function* ([status, value, expected]) {
    const { retryAfter } = yield* postTo(yield* answering(status, { "retry-after": value }))
    expect(retryAfter).toEqual(expected)
  })

  it.scoped.each<readonly [number, string, AttemptOutcome["errorCode"]]>([
    [400, "signature", "consumer_refused_signature"],
    [401, "time", "consumer_refused_time"],
    [400, "version", "consumer_refused_version"],
    [403, "organization", "consumer_refused_organization"],
    [422, "environment", "consumer_refused_environment"],
    [400, "Environment", "http_error"],
    [400, "environment, time", "http_error"],
    [400, "consumer_refused_environment", "http_error"],
    [400, "toString", "http_error"],
    [400, "whsec_secret".repeat(500), "http_error"],
    [400, "", "http_error"],
    [503, "environment", "http_error"],
    [302, "environment", "redirect_refused"],
    [204, "environment", null]
  ])("with %d, Service-Refused: %j is %s", function* ([status, value, errorCode]) {
    const outcome = yield* postTo(yield* answering(status, { "Service-Refused": value }))
    expect(outcome).toMatchObject({ httpStatus: status, errorCode })
    expect(Object.keys(outcome).toSorted()).toEqual(["durationMs", "errorCode", "httpStatus", "retryAfter"])
  })

  it.scoped("Service-Refused twice is no code", function* () {
    const twice = head("400 Bad Request", "service-refused: time", "service-refused: time", "content-length: 0")
    expect(yield* postTo(yield* rawConsumer(twice, false))).toMatchObject({
      httpStatus: 400,
      errorCode: "http_error"
    })
  })
})

layer(transport())("what is sent", (it) => {
  it.scoped("is one POST of exactly the bytes and headers given", function* () {
    const consumer = yield* answering(200)
    const body = "{}\né\0\uffff"
    yield* post(`http://127.0.0.1:${consumer.port}/a%20path/@x`, {
      body,
      headers: { "Service-Signature": "t=1,v1=ab", "user-agent": "connected-payments/1" }
    })
    const [request] = consumer.requests
    expect(consumer.requests).toHaveLength(1)
    expect(request).toMatchObject({ method: "POST", path: "/a%20path/@x", body: Buffer.from(body) })
    expect(request?.rawHeaders).toEqual([
      ...["host", `127.0.0.1:${consumer.port}`],
      ...["connection", "keep-alive"],
      ...["Service-Signature", "t=1,v1=ab"],
      ...["user-agent", "connected-payments/1"],
      ...["content-length", "9"]
    ])
  })

  it.scoped("is UTF-8, with its length in bytes, where the body is text", function* () {
    const consumer = yield* answering(200)
    yield* post(`http://127.0.0.1:${consumer.port}/`, { body: '{"é":"€"}' })
    yield* post(`http://127.0.0.1:${consumer.port}/`, { body: "" })
    expect(consumer.requests.map(({ body }) => body.toString("utf8"))).toEqual(['{"é":"€"}', ""])
    const lengths = consumer.requests.map(({ rawHeaders }) => rawHeaders[rawHeaders.indexOf("content-length") + 1])
    expect(lengths).toEqual(["12", "0"])
  })

  it.scoped("is nothing where a header is impossible: that is a defect", function* () {
    const consumer = yield* answering(200)
    for (const headers of [{ "x-a": "1\r\nx-b: 2" }, { "x y": "1" }, { "transfer-encoding": "chunked" }]) {
      const exit = yield* Effect.exit(post(`http://127.0.0.1:${consumer.port}/`, { headers }))
      expect(Exit.isFailure(exit) && exit.cause._tag).toBe("Die")
    }
    expect(consumer.requests).toHaveLength(0)
  })
})

layer(transport())("an exchange that breaks", (it) => {
  it.scoped("connection_refused: nobody listens", function* () {
    const port = yield* Effect.scoped(Effect.map(answering(200), ({ port }) => port))
    for (const host of ["127.0.0.1", "localhost"]) {
      expect(yield* post(`http://${host}:${port}/`)).toMatchObject({
        httpStatus: null,
        errorCode: "connection_refused"
      })
    }
  })

  it.scoped("connection_reset: the connection is reset, or closed without an answer", function* () {
    const resetting = yield* tcpConsumer((socket) => socket.on("data", () => socket.resetAndDestroy()))
    for (const consumer of [resetting, yield* tcpConsumer((socket) => socket.on("data", () => socket.end()))]) {
      expect(yield* postTo(consumer)).toMatchObject({ httpStatus: null, errorCode: "connection_reset" })
      expect(consumer.sockets).toHaveLength(1)
    }
  })

  it.scoped.each([
    "HTTP/1.1 20",
    head("200 OK", "content-length: 10").slice(0, -2),
    `${head("200 OK", "content-length: 10")}short`,
    `${head("200 OK", "content-length: 10", "connection: close")}short`,
    `${head("200 OK", "transfer-encoding: chunked", "connection: close")}5\r\nhel`
  ])("connection_reset: an answer that is cut short is none: %j", function* (answer) {
    const consumer = yield* rawConsumer(answer, true)
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: null, errorCode: "connection_reset" })
    expect(consumer.sockets).toHaveLength(1)
  })

  it.scoped("a failing status stays what it is where the rest of its answer is cut short", function* () {
    const consumer = yield* rawConsumer(`${head("404 Not Found", "content-length: 10")}short`, true)
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: 404, errorCode: "http_error" })
  })

  it.scoped.each([
    "SSH-2.0-OpenSSH_9.6\r\n",
    "220 mail.example ESMTP\r\n",
    "<html></html>",
    "\u0000\u0001\u0002\u0003",
    "HTTP/1.1 abc OK\r\n\r\n",
    "HTTP/9.9 200 OK\r\n\r\n",
    head("200 OK", "content-length: -1"),
    head("200 OK", "no colon here"),
    head("200 OK", "transfer-encoding:", "content-length: 0"),
    `${head("200 OK", "transfer-encoding: chunked")}zz\r\nhello\r\n`,
    head("101 Switching Protocols", "connection: upgrade", "upgrade: websocket")
  ])("network_error: what comes is not an HTTP answer: %j", function* (answer) {
    const consumer = yield* rawConsumer(answer, false)
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: null, errorCode: "network_error" })
    yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
  })
})

layer(transport())("the size of an answer", (it) => {
  const flooding = (start: string, chunk: Buffer) =>
    tcpConsumer((socket) => {
      const pour = () => {
        while (socket.writable && socket.write(chunk)) {}
      }
      socket.once("data", () => {
        socket.write(start)
        socket.on("drain", pour)
        pour()
      })
    })

  const filler = Buffer.alloc(16 * 1024, "a")

  it.scoped.each<readonly [string, number, string | null]>([
    ["200 OK", 200, null],
    ["500 Oops", 500, "http_error"],
    ["302 Found", 302, "redirect_refused"]
  ])(
    "the status %s decides where the body has no end, and the connection is dropped",
    function* ([line, httpStatus, errorCode]) {
      const consumer = yield* flooding(head(line), filler)
      expect(yield* postTo(consumer)).toMatchObject({ httpStatus, errorCode })
      yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
    }
  )

  it.scoped("a body of the limit is read, one byte more drops the connection", () =>
    Effect.gen(function* () {
      const consumer = yield* httpConsumer((request, response) => {
        response.end(Buffer.alloc(request.url === "/over" ? 1001 : 1000))
      })
      const origin = `http://127.0.0.1:${consumer.port}`
      for (const path of ["/", "/", "/over", "/"]) expect(yield* post(origin + path)).toMatchObject({ errorCode: null })
      expect(consumer.sockets).toHaveLength(2)
    }).pipe(Effect.provide(transport({ maxResponseBytes: 1000 })))
  )

  it.scoped("a compressed body is not decompressed", function* () {
    const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024))
    expect(bomb.length).toBeLessThan(64 * 1024)
    const consumer = yield* httpConsumer((_, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb)
    })
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: 200, errorCode: null })
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: 200, errorCode: null })
    expect(consumer.sockets).toHaveLength(1)
  })

  it.scoped("response_too_large: a head without end", function* () {
    const inOneHeader = yield* flooding("HTTP/1.1 200 OK\r\nx-a: ", filler)
    const inManyHeaders = yield* flooding("HTTP/1.1 200 OK\r\n", Buffer.from("x-a: b\r\n".repeat(1000)))
    const inTheReason = yield* flooding("HTTP/1.1 200 ", filler)
    const informational = yield* flooding("", Buffer.from(head("103 Early Hints").repeat(1000)))
    for (const consumer of [inOneHeader, inManyHeaders, inTheReason, informational]) {
      expect(yield* postTo(consumer)).toMatchObject({ httpStatus: null, errorCode: "response_too_large" })
      yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
    }
  })

  it.scoped("the status decides where chunk extensions or trailers have no end", function* () {
    const extension = yield* flooding(`${head("200 OK", "transfer-encoding: chunked")}1;a=`, filler)
    expect(yield* postTo(extension)).toMatchObject({ httpStatus: 200, errorCode: null })
    yield* until(() => extension.sockets.every((socket) => socket.destroyed))
  })
})

layer(transport({ timeout: "150 millis" }))("the deadline", (it) => {
  const dripping = (start: string, drop: string) =>
    tcpConsumer((socket) => {
      socket.once("data", () => {
        socket.write(start)
        const timer = setInterval(() => socket.write(drop), 10)
        socket.on("close", () => clearInterval(timer))
      })
    })

  const silent = tcpConsumer((socket) => socket.resume())

  it.scoped("timeout: no answer, and the connection is closed", () =>
    Effect.gen(function* () {
      const consumer = yield* silent
      const outcome = yield* postTo(consumer)
      expect(outcome).toMatchObject({ httpStatus: null, errorCode: "timeout" })
      expect(outcome.durationMs).toBeGreaterThanOrEqual(500)
      yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
      expect(consumer.sockets).toHaveLength(1)
    }).pipe(Effect.provide(transport({ timeout: "500 millis" })))
  )

  it.scoped.each<readonly [string, string, string]>([
    ["the head", "HTTP/1.1 200 OK\r\nx-a: ", "a"],
    ["the body", head("200 OK", "content-length: 1000000"), "a"],
    ["chunks", head("200 OK", "transfer-encoding: chunked"), "1\r\na\r\n"],
    ["informational answers", "", head("103 Early Hints")]
  ])("timeout: a slow drip of %s does not outlive it", function* ([, start, drop]) {
    const consumer = yield* dripping(start, drop)
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: null, errorCode: "timeout" })
    yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
  })

  it.scoped("a failing status stays what it is where its body drips on", () =>
    Effect.gen(function* () {
      const consumer = yield* dripping(head("503 Busy", "content-length: 1000000", "retry-after: 7"), "a")
      expect(yield* postTo(consumer)).toMatchObject({
        httpStatus: 503,
        errorCode: "http_error",
        retryAfter: Duration.seconds(7)
      })
    }).pipe(Effect.provide(transport({ timeout: "1 second" })))
  )

  it.scoped("timeout: a request that the consumer does not read", function* () {
    const consumer = yield* tcpConsumer((socket) => socket.pause())
    const outcome = yield* post(`http://127.0.0.1:${consumer.port}/`, { body: "x".repeat(16 * 1024 * 1024) })
    expect(outcome).toMatchObject({ httpStatus: null, errorCode: "timeout" })
  })

  it.scoped("holds for each of 500 attempts at once, beside which others succeed", () =>
    Effect.gen(function* () {
      const hanging = yield* silent
      const healthy = yield* answering(200)
      const stuck = yield* Effect.fork(
        Effect.forEach(Array.from({ length: 500 }), () => postTo(hanging), { concurrency: "unbounded" })
      )
      yield* until(() => hanging.sockets.length === 500)
      expect(yield* postTo(healthy)).toMatchObject({ errorCode: null })
      const outcomes = yield* Fiber.join(stuck)
      expect(outcomes.filter(({ errorCode }) => errorCode === "timeout")).toHaveLength(500)
      expect(Math.min(...outcomes.map(({ durationMs }) => durationMs))).toBeGreaterThanOrEqual(5000)
      yield* until(() => hanging.sockets.every((socket) => socket.destroyed))
      // As long as all of them take to connect on a machine that does much else
    }).pipe(Effect.provide(transport({ timeout: "5 seconds" })))
  )
})

describe("the end of the transport", () => {
  it.scopedLive("ends what is in flight, and connects no more", function* () {
    const consumer = yield* tcpConsumer((socket) => socket.resume())
    const { attempt, service } = yield* Effect.gen(function* () {
      const attempt = yield* Effect.forkDaemon(postTo(consumer))
      yield* until(() => consumer.sockets.some((socket) => socket.bytesRead > 0))
      return { attempt, service: yield* Transport }
    }).pipe(Effect.provide(transport()))
    expect(yield* Fiber.join(attempt)).toMatchObject({ httpStatus: null, errorCode: "interrupted" })
    yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
    expect(yield* Effect.provideService(postTo(consumer), Transport, service)).toMatchObject({
      errorCode: "interrupted"
    })
    expect(consumer.sockets).toHaveLength(1)
  })
})
