import type { Socket } from "node:net"
import { createSecureContext } from "node:tls"
import { Worker } from "node:worker_threads"
import { Effect, Layer } from "effect"
import { type Connection, Connections, type Origin } from "../../src/engine/transport/Connections.ts"
import { DnsResolver, loopbackToo } from "../../src/engine/transport/DestinationUrl.ts"
import { describe, expect, it, layer } from "../harness/Tests.ts"
import { type Consumer, httpConsumer, httpsConsumer, post, tcpConsumer, transport, until } from "./TransportServers.ts"

const ok = httpConsumer((_, response) => response.end("ok"))

const open = ({ sockets }: Consumer): number => sockets.filter((socket) => !socket.destroyed).length

const postTo = ({ port }: Consumer, path = "/") => post(`http://127.0.0.1:${port}${path}`)

const loopback = [{ address: "127.0.0.1", family: 4 as const }]

const turn = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

const nobody = { onReady: () => {}, onBytes: () => {}, onEnd: () => {}, onBroken: () => {} }

const makeConnections = Effect.fnUntraced(function* (idleMillis: number) {
  const settings = { idlePerOrigin: 1, idleInAll: 1, idleMillis, maxAgeMillis: 60_000 }
  return new Connections(
    {
      resolver: yield* DnsResolver,
      runtime: yield* Effect.runtime<never>(),
      secureContext: createSecureContext(),
      ...settings
    },
    loopbackToo
  )
})

const openedTo = (connections: Connections, origin: Origin) =>
  Effect.async<Connection>((resume) => {
    const opened: Connection = connections.acquire(origin, {
      ...nobody,
      onReady: () => resume(Effect.succeed(opened))
    })
    opened.open()
  })

const success = { httpStatus: 200, errorCode: null }

layer(transport())("a connection that is kept open", (it) => {
  it.scoped("is used again for the same origin", function* () {
    const [one, other] = [yield* ok, yield* ok]
    for (const path of ["/a", "/b", "/c"]) expect(yield* postTo(one, path)).toMatchObject(success)
    expect(yield* postTo(other)).toMatchObject(success)
    expect([one.sockets.length, other.sockets.length]).toEqual([1, 1])
    expect(one.requests).toHaveLength(3)
  })

  it.scoped("does not serve an attempt that may not go to this machine", function* () {
    const consumer = yield* ok
    const url = `http://127.0.0.1:${consumer.port}/`
    expect(yield* post(url)).toMatchObject(success)
    expect(yield* post(url, { allowLocal: false })).toMatchObject({ errorCode: "destination_blocked" })
    expect(consumer.requests).toHaveLength(1)
  })

  it.scoped("is one of a bounded number per origin, which does not bound the attempts in flight", () =>
    Effect.gen(function* () {
      const waiting: Array<() => void> = []
      const consumer = yield* httpConsumer((_, response) => {
        waiting.push(() => response.end())
        if (waiting.length === 40) for (const answer of waiting) answer()
      })
      const outcomes = yield* Effect.forEach(Array.from({ length: 40 }), () => postTo(consumer), {
        concurrency: "unbounded"
      })
      expect(outcomes.every(({ errorCode }) => errorCode === null)).toBe(true)
      expect(consumer.sockets).toHaveLength(40)
      yield* until(() => open(consumer) <= 3)
      expect(open(consumer)).toBe(3)
    }).pipe(Effect.provide(transport({ idleConnectionsPerOrigin: 3 })))
  )

  it.scoped("is one of a bounded number in all, the longest unused going first", () =>
    Effect.gen(function* () {
      const consumers = yield* Effect.all([ok, ok, ok, ok])
      for (const consumer of consumers) expect(yield* postTo(consumer)).toMatchObject(success)
      yield* until(() => consumers.filter((consumer) => open(consumer) === 1).length === 2)
      expect(consumers.map(open)).toEqual([0, 0, 1, 1])
      for (const consumer of consumers.slice(2)) expect(yield* postTo(consumer)).toMatchObject(success)
      expect(consumers.map(({ sockets }) => sockets.length)).toEqual([1, 1, 1, 1])
    }).pipe(Effect.provide(transport({ idleConnections: 2 })))
  )

  it.scoped("is none where the bound is zero", () =>
    Effect.gen(function* () {
      const consumer = yield* ok
      for (const path of ["/a", "/b"]) expect(yield* postTo(consumer, path)).toMatchObject(success)
      expect(consumer.sockets).toHaveLength(2)
      yield* until(() => open(consumer) === 0)
    }).pipe(Effect.provide(transport({ idleConnectionsPerOrigin: 0 })))
  )

  it.scoped("closes when it is not used", () =>
    Effect.gen(function* () {
      const consumer = yield* ok
      expect(yield* postTo(consumer)).toMatchObject(success)
      yield* until(() => open(consumer) === 0)
      expect(yield* postTo(consumer)).toMatchObject(success)
      expect(consumer.sockets).toHaveLength(2)
    }).pipe(Effect.provide(transport({ idleTimeout: "50 millis" })))
  )

  it.scoped("is forgotten once it has closed", () =>
    Effect.gen(function* () {
      const consumer = yield* ok
      const connections = yield* makeConnections(50)
      const origin = connections.originOf(`http://127.0.0.1:${consumer.port}`)
      const connection = yield* openedTo(connections, origin)
      connections.release(connection, null)
      expect(connections.acquire(origin, nobody)).toBe(connection)
      connections.release(connection, null)
      yield* until(() => consumer.sockets.length === 1 && open(consumer) === 0)
      expect(connections.acquire(origin, nobody)).not.toBe(connection)
      connections.discardAll()
    }).pipe(Effect.provide(DnsResolver.layer))
  )

  it.scoped("serves whoever has its origin, even after ten thousand others, by which the origin is forgotten", () =>
    Effect.gen(function* () {
      const consumer = yield* ok
      const connections = yield* makeConnections(60_000)
      const name = `http://127.0.0.1:${consumer.port}`
      const origin = connections.originOf(name)
      const connection = yield* openedTo(connections, origin)
      connections.release(connection, null)
      for (let other = 1; other < 10_000; other += 1) connections.originOf(`http://${other}.example`)
      expect(connections.originOf(name)).toBe(origin)
      connections.originOf("http://one-more.example")
      expect(connections.originOf(name)).not.toBe(origin)
      expect(connections.acquire(origin, nobody)).toBe(connection)
      connections.discardAll()
      yield* until(() => consumer.sockets.length === 1 && open(consumer) === 0)
    }).pipe(Effect.provide(DnsResolver.layer))
  )

  it.scoped("closes when it is too old, and the name is looked up again", () => {
    let lookups = 0
    const resolver = Layer.succeed(DnsResolver, {
      resolve: () =>
        Effect.sync(() => {
          lookups++
          return [{ address: "127.0.0.1", family: 4 as const }]
        })
    })
    return Effect.gen(function* () {
      const consumer = yield* ok
      for (const path of ["/a", "/b"]) {
        expect(yield* post(`http://localhost:${consumer.port}${path}`)).toMatchObject(success)
      }
      expect(consumer.sockets).toHaveLength(2)
      expect(lookups).toBe(2)
      yield* until(() => open(consumer) <= 1)
    }).pipe(Effect.provide(transport({ maxConnectionAge: 0 }, resolver)))
  })

  it.scoped("closes with the transport", function* () {
    const consumer = yield* ok
    expect(yield* postTo(consumer).pipe(Effect.provide(transport()))).toMatchObject(success)
    yield* until(() => open(consumer) === 0)
  })
})

layer(transport())("an attempt", (it) => {
  it.scoped("does not wait for others to the same origin", function* () {
    const consumer = yield* httpConsumer((request, response) => {
      if (request.url !== "/hangs") response.end()
    })
    yield* Effect.fork(
      Effect.forEach(Array.from({ length: 100 }), () => postTo(consumer, "/hangs"), { concurrency: "unbounded" })
    )
    yield* until(() => consumer.requests.length === 100)
    expect(yield* postTo(consumer, "/healthy")).toMatchObject(success)
  })

  const lookups = [
    { speed: "quick", resolve: () => Effect.succeed(loopback) },
    { speed: "slow", resolve: () => Effect.as(Effect.repeatN(turn, 20), loopback) }
  ]

  it.scoped.each(lookups)(
    "is not lost on a connection that the consumer closed just before, the new one's look-up being $speed",
    ({ resolve }) =>
      Effect.gen(function* () {
        const closed = new Int32Array(new SharedArrayBuffer(4))
        const { worker, port } = yield* closingConsumer(closed)
        const url = `http://localhost:${port}/`
        expect(yield* post(url)).toMatchObject(success)
        // Nothing of the close is seen here before the next attempt has begun: this thread sleeps through it
        yield* Effect.sync(() => {
          worker.postMessage("close")
          Atomics.wait(closed, 0, 0)
        })
        expect(yield* post(url)).toMatchObject(success)
      }).pipe(Effect.provide(transport({ timeout: "5 seconds" }, Layer.succeed(DnsResolver, { resolve }))))
  )

  it.scoped("is not answered by what the consumer sent before it was asked", function* () {
    const ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    let early: Socket | undefined
    const consumer = yield* tcpConsumer((socket) => {
      socket.on("data", () => {
        if (early === undefined) socket.write(ok)
        else socket.write("HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n")
        early ??= socket
      })
    })
    expect(yield* postTo(consumer)).toMatchObject(success)
    yield* Effect.async<void>((resume) => void early?.write(ok, () => resume(Effect.void)))
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: 201 })
    expect(consumer.sockets).toHaveLength(2)
  })

  it.scoped("does not use a connection again that answered before the request was written", function* () {
    const consumer = yield* tcpConsumer((socket) => {
      socket.pause()
      socket.write("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
    })
    const url = `http://127.0.0.1:${consumer.port}/`
    for (let attempt = 1; attempt <= 2; attempt++) {
      expect(yield* post(url, { body: "x".repeat(8 * 1024 * 1024) })).toMatchObject({ httpStatus: 202 })
      expect(consumer.sockets).toHaveLength(attempt)
    }
  })

  it.scoped("does not use a connection again that the consumer closes soon", function* () {
    const consumer = yield* httpConsumer((_, response) => response.setHeader("keep-alive", "timeout=2").end())
    for (const path of ["/a", "/b"]) expect(yield* postTo(consumer, path)).toMatchObject(success)
    expect(consumer.sockets).toHaveLength(2)
  })
})

/** A consumer on a thread of its own. Told so, it closes its first connection and then sets `closed` to 1. */
const closingConsumer = (closed: Int32Array) =>
  Effect.acquireRelease(
    Effect.async<{ readonly worker: Worker; readonly port: number }>((resume) => {
      const worker = new Worker(
        `
        const { parentPort, workerData } = require("node:worker_threads")
        const sockets = []
        const server = require("node:net").createServer((socket) => {
          sockets.push(socket)
          socket.on("error", () => {})
          socket.on("data", (bytes) => {
            if (bytes.includes("POST ")) socket.write("HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\n\\r\\n")
          })
        })
        server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port))
        parentPort.on("message", () => {
          sockets[0].end(() => {
            Atomics.store(workerData, 0, 1)
            Atomics.notify(workerData, 0)
          })
        })
        `,
        { eval: true, workerData: closed }
      )
      worker.once("message", (port: number) => resume(Effect.succeed({ worker, port })))
    }),
    ({ worker }) => Effect.promise(() => worker.terminate())
  )

describe("a proxy in the environment", () => {
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]

  const proxiedBy = (proxy: Consumer) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const before = names.map((name) => [name, process.env[name]] as const)
        for (const name of names) process.env[name] = `http://127.0.0.1:${proxy.port}`
        process.env["NODE_USE_ENV_PROXY"] = "1"
        return before
      }),
      (before) =>
        Effect.sync(() => {
          delete process.env["NODE_USE_ENV_PROXY"]
          for (const [name, value] of before) {
            if (value === undefined) delete process.env[name]
            else process.env[name] = value
          }
        })
    )

  it.scopedLive("is not used", function* () {
    const [proxy, consumer] = [yield* ok, yield* ok]
    const secure = yield* httpsConsumer((_, response) => response.end())
    yield* proxiedBy(proxy)
    const outcomes = yield* Effect.all([postTo(consumer), post(`https://localhost:${secure.port}/`)]).pipe(
      Effect.provide(transport())
    )
    expect(outcomes).toMatchObject([success, { errorCode: "tls_failure" }])
    expect(proxy.sockets).toHaveLength(0)
    expect([consumer.sockets.length, secure.sockets.length]).toEqual([1, 1])
  })
})
