import { gzipSync } from "node:zlib"
import { Effect, type Scope } from "effect"
import { type Consumer, httpConsumer, rawConsumer, tcpConsumer } from "../engine/TransportServers.ts"

/** A consumer that does not do what a consumer should, and what a first attempt at it has to come to. */
export interface BadConsumer {
  readonly what: string
  readonly url: string
  readonly state: "queued" | "delivered" | "failed"
  readonly errorCode: string | null
}

const hook = ({ port }: Pick<Consumer, "port">) => `http://127.0.0.1:${port}/hook`
const secureHook = ({ port }: Pick<Consumer, "port">) => `https://localhost:${port}/hook`

/** Says the same for ever, as fast as it is read, or once in so many milliseconds. */
const endless = (start: string, more: string, everyMillis?: number) =>
  tcpConsumer((socket) => {
    socket.once("data", () => {
      socket.write(start)
      if (everyMillis !== undefined) {
        const timer = setInterval(() => socket.write(more), everyMillis)
        socket.on("close", () => clearInterval(timer))
        return
      }
      const pour = () => {
        while (socket.writable && socket.write(more)) {}
      }
      socket.on("drain", pour)
      pour()
    })
  })

const answering = (status: number, headers: Readonly<Record<string, string>> = {}, body: string | Buffer = "") =>
  httpConsumer((_, response) => response.writeHead(status, headers).end(body))

/** A port that nobody listens at any more. */
const nobody = Effect.map(Effect.scoped(answering(204)), ({ port }) => ({ port }))

/** 64 MiB in a few hundred bytes: what a client would unpack that believes its consumer. */
const bomb = gzipSync(gzipSync(Buffer.alloc(64 * 1024 * 1024)))

const filler = "a".repeat(64 * 1024)

interface Spec {
  readonly serve: Effect.Effect<Pick<Consumer, "port">, never, Scope.Scope>
  readonly state: BadConsumer["state"]
  readonly errorCode: string | null
  readonly secure?: boolean
}

const specs = (elsewhere: string): Readonly<Record<string, Spec>> => ({
  "never answers": { serve: tcpConsumer(() => {}), state: "queued", errorCode: "timeout" },
  "drips its head": { serve: endless("HTTP/1.1 200 OK\r\nx-a: ", "a", 50), state: "queued", errorCode: "timeout" },
  "drips its body": {
    serve: endless("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", "a", 50),
    state: "queued",
    errorCode: "timeout"
  },
  "resets the connection": {
    serve: tcpConsumer((socket) => socket.on("data", () => socket.resetAndDestroy())),
    state: "queued",
    errorCode: "connection_reset"
  },
  "closes without an answer": {
    serve: tcpConsumer((socket) => socket.on("data", () => socket.end())),
    state: "queued",
    errorCode: "connection_reset"
  },
  "is not there": { serve: nobody, state: "queued", errorCode: "connection_refused" },
  "speaks garbage": {
    serve: rawConsumer("220 mail.example ESMTP\r\n\u0000\u0001", false),
    state: "queued",
    errorCode: "network_error"
  },
  "sends a head without end": {
    serve: endless("HTTP/1.1 200 OK\r\n", `x-more: ${"a".repeat(1000)}\r\n`),
    state: "failed",
    errorCode: "response_too_large"
  },
  "sends an error without end": {
    serve: endless("HTTP/1.1 500 Oops\r\n\r\n", filler),
    state: "queued",
    errorCode: "http_error"
  },
  "sends a success without end": {
    serve: endless("HTTP/1.1 200 OK\r\n\r\n", filler),
    state: "delivered",
    errorCode: null
  },
  "sends a body that would fill the memory if it were unpacked": {
    serve: answering(200, { "content-encoding": "gzip, gzip" }, bomb),
    state: "delivered",
    errorCode: null
  },
  redirects: { serve: answering(307, { location: elsewhere }), state: "failed", errorCode: "redirect_refused" },
  "is gone": { serve: answering(410), state: "failed", errorCode: "http_error" },
  "asks to come again in a thousand years": {
    serve: answering(429, { "retry-after": "31536000000" }),
    state: "queued",
    errorCode: "http_error"
  },
  "holds the TLS handshake": { serve: tcpConsumer(() => {}), state: "queued", errorCode: "timeout", secure: true },
  "does not speak TLS": {
    serve: tcpConsumer((socket) => socket.on("data", () => socket.write("220 mail.example ESMTP\r\n"))),
    state: "queued",
    errorCode: "tls_failure",
    secure: true
  }
})

/** All of them, listening; `elsewhere` is where the one that redirects points to. */
export const badConsumers = (elsewhere: string): Effect.Effect<ReadonlyArray<BadConsumer>, never, Scope.Scope> =>
  Effect.forEach(Object.entries(specs(elsewhere)), ([what, { errorCode, secure, serve, state }]) =>
    Effect.map(serve, (server) => ({ what, url: secure ? secureHook(server) : hook(server), state, errorCode }))
  )
