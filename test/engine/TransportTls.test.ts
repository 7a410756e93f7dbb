import type { Socket } from "node:net"
import { Effect } from "effect"
import { expect, layer } from "../harness/Tests.ts"
import { certificate, httpConsumer, httpsConsumer, post, tcpConsumer, transport, until } from "./TransportServers.ts"

const ok = httpsConsumer((_, response) => response.end("ok"))

const trusting = transport({ certificateAuthorities: [certificate] })

const success = { httpStatus: 200, errorCode: null }
const tlsFailure = { httpStatus: null, errorCode: "tls_failure" }

layer(trusting)("an https destination", (it) => {
  it.scoped("is sent to where its certificate is trusted and bears its name", function* () {
    const consumer = yield* ok
    for (const path of ["/a", "/b"]) {
      expect(yield* post(`https://localhost:${consumer.port}${path}`)).toMatchObject(success)
    }
    expect(consumer.sockets).toHaveLength(1)
    expect(consumer.requests[0]?.body.toString("utf8")).toBe('{"id":"svc_evt_1"}')
  })

  it.scoped("tls_failure: its certificate is signed by itself", () =>
    Effect.gen(function* () {
      const consumer = yield* ok
      expect(yield* post(`https://localhost:${consumer.port}/`)).toMatchObject(tlsFailure)
      expect(consumer.requests).toHaveLength(0)
    }).pipe(Effect.provide(transport()))
  )

  it.scoped.each(["TLSv1.2", "TLSv1.3"] as const)(
    "tls_failure: its certificate bears another name, the second time too (%s)",
    function* (maxVersion) {
      const consumer = yield* httpsConsumer((_, response) => response.end(), { maxVersion })
      for (let attempt = 0; attempt < 4; attempt++) {
        expect(yield* post(`https://127.0.0.1:${consumer.port}/`)).toMatchObject(tlsFailure)
      }
      expect(consumer.requests).toHaveLength(0)
    }
  )

  it.scoped("tls_failure: it does not speak TLS", function* () {
    const plain = yield* httpConsumer((_, response) => response.end())
    const rubbish = yield* tcpConsumer((socket) => socket.on("data", () => socket.write("220 mail.example ESMTP\r\n")))
    for (const consumer of [plain, rubbish]) {
      expect(yield* post(`https://localhost:${consumer.port}/`)).toMatchObject(tlsFailure)
      expect(consumer.requests).toHaveLength(0)
    }
  })

  it.scoped("tls_failure: it has no protocol version or cipher in common with us", function* () {
    const old = yield* httpsConsumer((_, response) => response.end(), {
      minVersion: "TLSv1",
      maxVersion: "TLSv1.1",
      ciphers: "DEFAULT@SECLEVEL=0"
    })
    expect(yield* post(`https://localhost:${old.port}/`)).toMatchObject(tlsFailure)
  })

  it.scoped("tls_failure: an environment variable that turns verification off is not heeded", () =>
    Effect.gen(function* () {
      const consumer = yield* ok
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0"
        }),
        () =>
          Effect.sync(() => {
            delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"]
          })
      )
      expect(yield* post(`https://localhost:${consumer.port}/`)).toMatchObject(tlsFailure)
      expect(consumer.requests).toHaveLength(0)
    }).pipe(Effect.provide(transport()))
  )

  it.scoped("connection_reset: it closes within the handshake", function* () {
    const consumer = yield* tcpConsumer((socket) => socket.once("data", () => socket.end()))
    expect(yield* post(`https://localhost:${consumer.port}/`)).toMatchObject({ errorCode: "connection_reset" })
  })

  it.scoped(
    "a failure that may pass, never destination_blocked: it closes or resets the connection at once",
    function* () {
      const closing = [(socket: Socket) => void socket.destroy(), (socket: Socket) => void socket.resetAndDestroy()]
      for (const close of closing) {
        const consumer = yield* tcpConsumer(close)
        for (const scheme of ["https", "http"]) {
          for (let attempt = 0; attempt < 20; attempt++) {
            const { errorCode } = yield* post(`${scheme}://localhost:${consumer.port}/`)
            expect(errorCode).toBe("connection_reset")
          }
        }
      }
    }
  )

  it.scoped("timeout: it keeps silent in the handshake, and the connection is closed", () =>
    Effect.gen(function* () {
      const consumer = yield* tcpConsumer((socket) => socket.resume())
      expect(yield* post(`https://localhost:${consumer.port}/`)).toMatchObject({ errorCode: "timeout" })
      yield* until(() => consumer.sockets.length === 1 && consumer.sockets.every((socket) => socket.destroyed))
    }).pipe(Effect.provide(transport({ timeout: "150 millis" })))
  )

  it.scoped("has its answer cut off like any other", function* () {
    const consumer = yield* httpsConsumer(({ url }, response) => {
      const filler = Buffer.alloc(16 * 1024, "a")
      if (url === "/extension") response.socket?.write("HTTP/1.1 201 OK\r\ntransfer-encoding: chunked\r\n\r\n1;a=")
      else response.writeHead(201)
      const sink = url === "/extension" ? response.socket : response
      const pour = () => {
        while (sink?.writable && sink.write(filler)) {}
      }
      sink?.on("drain", pour)
      pour()
    })
    for (const path of ["/body", "/extension"]) {
      const outcome = yield* post(`https://localhost:${consumer.port}${path}`)
      expect(outcome).toMatchObject({ httpStatus: 201, errorCode: null })
    }
    yield* until(() => consumer.sockets.every((socket) => socket.destroyed))
  })

  it.scoped("is not spoken to in clear", function* () {
    const consumer = yield* ok
    expect((yield* post(`http://localhost:${consumer.port}/`)).errorCode).not.toBeNull()
    expect(consumer.requests).toHaveLength(0)
  })
})
