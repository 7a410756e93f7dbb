import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http"
import { Server as NetServer, Socket } from "node:net"
import { performance } from "node:perf_hooks"
import type { Duplex } from "node:stream"
import { setTimeout as passed } from "node:timers/promises"
import { HttpServer, type HttpServerError } from "@effect/platform"
import { layerContext, makeHandler, make as makeNodeServer } from "@effect/platform-node/NodeHttpServer"
import { Duration, Effect, Layer, Predicate, Runtime, type Scope } from "effect"
import { errorCode } from "../platform/errors/ErrorCode.ts"
import { HeadersTooLarge, PayloadTooLarge, RequestTimeout, ValidationFailed } from "../platform/errors/Errors.ts"
import { Stopping } from "../platform/kit/Request.ts"
import type { TrustedProxies } from "../platform/settings/Forms.ts"
import type { UnreadableRequest } from "./Body.ts"
import { boundConnections, type ClientConnections, type ConnectionBounds } from "./Connections.ts"
import { type DirectListener, DirectListeners } from "./DirectListeners.ts"

/** Node's HTTP server, with bounds on what a client can make it hold, and for how long. */

/** How long a client may take to send the request line and headers, and how large they may be. */
const headersTimeout = Duration.seconds(15)
const maxHeadBytes = 16 * 1024

const fullLogInterval = Duration.minutes(1)

export interface ServerOptions extends ConnectionBounds {
  readonly host: string
  readonly port: number
  readonly requestTimeout: Duration.Duration
  readonly keepAliveTimeout: Duration.Duration
  /** How long a shutdown keeps serving, no longer ready, before it stops accepting connections. */
  readonly shutdownDelay: Duration.Duration
  readonly shutdownTimeout: Duration.Duration
}

/** A busy client's next request may be on its way, and would arrive at a closed connection. */
const maxIdleGrace = Duration.millis(300)

/** The refusal of a request that could not be read; null if the client left before its end. */
const refusalOf = (error: unknown): UnreadableRequest | null => {
  switch (errorCode(error)) {
    case "HPE_INVALID_EOF_STATE":
    case "ECONNRESET":
    case "EPIPE":
      return null
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new RequestTimeout()
    case "HPE_HEADER_OVERFLOW":
      return new HeadersTooLarge()
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new PayloadTooLarge()
    default:
      return new ValidationFailed({ message: "The request is not valid HTTP." })
  }
}

const targetOf = (error: unknown): string => {
  const packet = Predicate.hasProperty(error, "rawPacket") ? error.rawPacket : undefined
  return Buffer.isBuffer(packet) ? (/^[A-Z]+ (\S+)/.exec(packet.toString("latin1", 0, 256))?.[1] ?? "") : ""
}

const answerClientErrors = (server: Server, { refuse }: ClientConnections): void => {
  const refuseOn = (socket: Duplex, error: unknown): void => {
    if (socket instanceof Socket) refuse(socket, refusalOf(error), targetOf(error))
    else socket.destroy()
  }
  server
    // Node removes its own listener from a socket that it hands over for CONNECT: without one, a reset would end the
    // process
    .on("connection", (socket) => socket.on("error", () => {}))
    .on("clientError", (error, socket) => refuseOn(socket, error))
    .on("connect", (_request, socket) => refuseOn(socket, undefined))
    // Node answers an expectation that it does not know with an empty 417; such a header may be ignored
    .on("checkExpectation", (request, response) => server.emit("request", request, response))
}

const fullLines = {
  connection: "The process has its maximum of connections, or one address has half of it (CONNECTION_LIMIT)",
  body: "Request bodies fill the memory available to them, or those of one address half of it"
}

/** Logs that connections or bodies were refused, each at most once a minute. */
const makeFullLog: Effect.Effect<(refused: keyof typeof fullLines) => void> = Effect.map(
  Effect.runtime<never>(),
  (runtime) => {
    const never = () => ({ loggedAt: Number.NEGATIVE_INFINITY, refused: 0 })
    const logs = { connection: never(), body: never() }
    return (what) => {
      const log = logs[what]
      log.refused += 1
      const now = performance.now()
      if (now - log.loggedAt < Duration.toMillis(fullLogInterval)) return
      Runtime.runFork(runtime)(
        Effect.logWarning(`${fullLines[what]}: ${log.refused} refused since this was last logged`)
      )
      log.loggedAt = now
      log.refused = 0
    }
  }
)

/**
 * Logs once that requests look forwarded while no proxy is trusted. Anybody can send the header, so it proves nothing,
 * but behind a proxy that is not configured all clients share one address's limits, and nothing else would say so.
 */
const warnOfUnknownProxy = (server: Server, proxies: TrustedProxies, runtime: Runtime.Runtime<never>): void => {
  if (proxies.rules.length > 0) return
  const look = ({ headers }: IncomingMessage): void => {
    if (headers["x-forwarded-for"] === undefined) return
    server.off("request", look)
    Runtime.runFork(runtime)(
      Effect.logWarning(
        "A request has X-Forwarded-For, and no proxy is trusted: if the service is behind a proxy, set TRUSTED_PROXIES to its addresses, or all clients count as one. This is logged once"
      )
    )
  }
  server.on("request", look)
}

export interface BoundServer {
  readonly address: HttpServer.Address
  readonly connections: () => number
  /** Serves requests until the scope closes; then drains the server. */
  readonly serve: (listener: RequestListener) => Effect.Effect<void, never, Scope.Scope>
}

/**
 * Holds one request per connection until the server serves, while the process is starting: without a listener, Node
 * would never answer it. A connection that sends a second one meanwhile is closed, so that none takes others' room. The
 * returned function serves the held requests and all later ones.
 */
const keepEarly = (server: Server): ((listener: RequestListener) => void) => {
  const early = new Map<Socket, Parameters<RequestListener>>()
  const keep: RequestListener = (request, response) => {
    const { socket } = request
    if (early.has(socket)) {
      socket.destroy()
      return
    }
    early.set(socket, [request, response])
    socket.once("close", () => early.delete(socket))
  }
  server.on("request", keep)
  return (listener) => {
    server.off("request", keep)
    server.on("request", listener)
    const kept = [...early.values()]
    early.clear()
    for (const [request, response] of kept) listener(request, response)
  }
}

/** Listens within the bounds; requests that arrive before `serve` runs wait for it. */
export const listen = (
  options: ServerOptions
): Effect.Effect<BoundServer, HttpServerError.ServeError, Scope.Scope | Stopping> =>
  Effect.gen(function* () {
    const server = createServer({
      maxHeaderSize: maxHeadBytes,
      headersTimeout: Math.min(Duration.toMillis(headersTimeout), Duration.toMillis(options.requestTimeout)),
      requestTimeout: Duration.toMillis(options.requestTimeout),
      keepAliveTimeout: Duration.toMillis(options.keepAliveTimeout),
      connectionsCheckingInterval: 1000,
      // Node would answer with an empty 400; nothing here depends on the host
      requireHostHeader: false
    })
    const connections = boundConnections(server, options, yield* makeFullLog)
    answerClientErrors(server, connections)
    const stopping = yield* Stopping
    const runtime = yield* Effect.runtime<never>()
    const log = Runtime.runSync(runtime)
    const beginServing = keepEarly(server)
    const { address } = yield* makeNodeServer(() => server, { host: options.host, port: options.port })
    warnOfUnknownProxy(server, options.trustedProxies, runtime)
    yield* closeEventually(server, options.shutdownTimeout)
    return {
      address,
      connections: connections.open,
      serve: (handler) => {
        const listener = connections.serve(handler)
        return Effect.acquireRelease(
          Effect.sync(() => beginServing(listener)),
          () =>
            Effect.zipRight(
              Effect.promise(() => drain(server, connections, options, { log, stopping })),
              Effect.sync(() => server.off("request", listener))
            )
        )
      }
    }
  })

const httpServer = (options: ServerOptions) =>
  Effect.zipWith(listen(options), DirectListeners, ({ address, serve }, directly) =>
    HttpServer.make({
      address,
      // The platform would also accept upgrades, whose connections escape every bound; treated as ordinary requests,
      // they don't
      serve: (app, middleware): Effect.Effect<void, never, Scope.Scope> =>
        Effect.flatMap(
          Effect.zipWith(
            makeHandler(middleware === undefined ? app : middleware(app)),
            Effect.runtime<never>(),
            (handler, runtime) => listenerOf(handler, directly, runtime)
          ),
          serve
        )
    })
  )

const listenerOf =
  (
    handler: RequestListener,
    directly: ReadonlyMap<string, DirectListener>,
    runtime: Runtime.Runtime<never>
  ): RequestListener =>
  (request, response) => {
    const direct = request.method === "POST" ? directly.get(request.url ?? "") : undefined
    if (direct === undefined) handler(request, response)
    else direct(runtime, request, response)
  }

/** Only stops listening: Node's own `close` would also end connections, while requests are on their way. */
const stopListening = (server: Server): void => {
  NetServer.prototype.close.call(server)
}

/**
 * Drains the server: answers the requests that clients have begun to send, and announces the end. Uses Node's timers,
 * like the server's other bounds, so that a test's stopped clock can't block it.
 */
const drain = async (
  server: Server,
  connections: ClientConnections,
  { shutdownDelay, shutdownTimeout }: ServerOptions,
  { log, stopping }: { readonly log: (line: Effect.Effect<void>) => void; readonly stopping: Stopping["Type"] }
): Promise<void> => {
  stopping.begun = true
  const delay = Duration.toMillis(shutdownDelay)
  log(Effect.logInfo(`Shutdown: no longer ready; new connections are accepted for ${delay} ms (SHUTDOWN_DELAY)`))
  if (delay > 0) await passed(delay)
  // Connections stay open until here: a client that had to reconnect could do so just as listening ends, and be reset
  stopListening(server)
  log(Effect.logInfo(`Shutdown: accepts no more connections; requests under way: ${connections.underWay()}`))
  const grace = Duration.min(maxIdleGrace, Duration.times(shutdownTimeout, 0.1))
  const refused = await connections.drain({ grace, timeout: shutdownTimeout })
  // Only stops Node's own timers: no connection is left
  server.close()
  log(
    refused === 0
      ? Effect.logInfo("Shutdown: every request is answered, all connections are closed")
      : Effect.logWarning(`Shutdown: ${refused} requests took longer than SHUTDOWN_TIMEOUT and were refused`)
  )
}

/** Idle connections at once, all others after `after`. */
const closeEventually = (server: Server, after: Duration.Duration) =>
  Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), Duration.toMillis(after)).unref()
    })
  )

/**
 * An `HttpServer` that listens when the layer is built. On shutdown it keeps serving for `shutdownDelay`, no longer
 * ready, then accepts no more connections and waits at most `shutdownTimeout` for requests under way: a request that
 * hangs must not block the process.
 */
export const serverLayer = (options: ServerOptions) =>
  Layer.merge(Layer.scoped(HttpServer.HttpServer, httpServer(options)), layerContext).pipe(
    Layer.provideMerge(
      Layer.merge(
        stoppingLayer,
        Layer.sync(DirectListeners, () => new Map())
      )
    )
  )

export const stoppingLayer: Layer.Layer<Stopping> = Layer.sync(Stopping, () => ({ begun: false }))
