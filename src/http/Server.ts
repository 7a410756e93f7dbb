import { createServer, type IncomingMessage, type Server } from "node:http"
import { Server as NetServer, Socket } from "node:net"
import type { Duplex } from "node:stream"
import { setTimeout as passed } from "node:timers/promises"
import { HttpServer, type HttpServerError } from "@effect/platform"
import { layerContext, makeHandler, make as makeNodeServer } from "@effect/platform-node/NodeHttpServer"
import { Duration, Effect, Layer, Predicate, Runtime, type Scope } from "effect"
import { HeadersTooLarge, PayloadTooLarge, RequestTimeout, ValidationFailed } from "../errors/Errors.ts"
import type { UnreadableRequest } from "../kit/Body.ts"
import type { TrustedProxies } from "../settings/Forms.ts"
import { boundConnections, type ConnectionBounds, type Connections } from "./Connections.ts"
import { Stopping } from "./Stopping.ts"

/** Node's HTTP server with bounds on what a client can make it hold, and on how long. */

/** How long a client may take to send its head, which is at most so large. */
const headersTimeout = Duration.seconds(15)
const maxHeadBytes = 16 * 1024

/** How often a full server says so in the log. */
const fullLogInterval = Duration.minutes(1)

/** Where the server listens, and its bounds. */
export interface ServerOptions extends ConnectionBounds {
  readonly host: string
  readonly port: number
  /** How long a client may take to send a request. */
  readonly requestTimeout: Duration.Duration
  /** How long a connection stays open without a request. */
  readonly keepAliveTimeout: Duration.Duration
  /** How long a shutdown goes on serving, not ready any more, before it takes no more connections. */
  readonly shutdownDelay: Duration.Duration
  /** How long a shutdown then waits for requests under way. */
  readonly shutdownTimeout: Duration.Duration
}

/**
 * How long a connection without a request is still served at shutdown if one comes, at most: a busy client's next
 * request may be on its way, and would meet a closed connection.
 */
const maxIdleGrace = Duration.millis(300)

/** What is said of a request that could not be read; null where its client has left before its end. */
const refusalOf = (error: unknown): UnreadableRequest | null => {
  switch (Predicate.hasProperty(error, "code") ? error.code : undefined) {
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

/** The target of the request line, where what could not be read begins with one. */
const targetOf = (error: unknown): string => {
  const packet = Predicate.hasProperty(error, "rawPacket") ? error.rawPacket : undefined
  return Buffer.isBuffer(packet) ? (/^[A-Z]+ (\S+)/.exec(packet.toString("latin1", 0, 256))?.[1] ?? "") : ""
}

const answerClientErrors = (server: Server, { refuse }: Connections): void => {
  const refuseOn = (socket: Duplex, error: unknown): void => {
    if (socket instanceof Socket) refuse(socket, refusalOf(error), targetOf(error))
    else socket.destroy()
  }
  server
    .on("clientError", (error, socket) => refuseOn(socket, error))
    .on("connect", (_request, socket) => refuseOn(socket, undefined))
    // Node answers an expectation that it does not know with an empty 417; such a header may be ignored
    .on("checkExpectation", (request, response) => server.emit("request", request, response))
}

/** Says in the log that connections were refused, at most once a minute. */
const makeFullLog: Effect.Effect<() => void> = Effect.map(Effect.runtime<never>(), (runtime) => {
  let loggedAt = Number.NEGATIVE_INFINITY
  let refused = 0
  return () => {
    refused += 1
    const now = Date.now()
    if (now - loggedAt < Duration.toMillis(fullLogInterval)) return
    Runtime.runFork(runtime)(
      Effect.logWarning(
        `The process has as many connections as it may have, or one address has half of them (CONNECTION_LIMIT): ${refused} refused since this was last logged`
      )
    )
    loggedAt = now
    refused = 0
  }
})

/**
 * Says once that requests look forwarded while no proxy is trusted. Anybody can send the header: it proves nothing, but
 * behind a proxy that is not named all clients share one address's limits, and nothing else would say so.
 */
const warnOfUnknownProxy = (server: Server, proxies: TrustedProxies, runtime: Runtime.Runtime<never>): void => {
  if (proxies.rules.length > 0) return
  const look = ({ headers }: IncomingMessage): void => {
    if (headers["x-forwarded-for"] === undefined) return
    server.off("request", look)
    Runtime.runFork(runtime)(
      Effect.logWarning(
        "A request has X-Forwarded-For, and no proxy is trusted: if the service is behind a proxy, set TRUSTED_PROXIES to its addresses, or all clients count as one. This is said once"
      )
    )
  }
  server.on("request", look)
}

const listen = (
  options: ServerOptions
): Effect.Effect<HttpServer.HttpServer, HttpServerError.ServeError, Scope.Scope> =>
  Effect.gen(function* () {
    const server = createServer({
      maxHeaderSize: maxHeadBytes,
      headersTimeout: Math.min(Duration.toMillis(headersTimeout), Duration.toMillis(options.requestTimeout)),
      requestTimeout: Duration.toMillis(options.requestTimeout),
      keepAliveTimeout: Duration.toMillis(options.keepAliveTimeout),
      connectionsCheckingInterval: 1000,
      // Node would answer with an empty 400; nothing here goes by the host
      requireHostHeader: false
    })
    const connections = boundConnections(server, options, yield* makeFullLog)
    answerClientErrors(server, connections)
    const stopping = yield* Stopping
    const logFrom = yield* Effect.runtime<never>()
    const { address } = yield* makeNodeServer(() => server, { host: options.host, port: options.port })
    warnOfUnknownProxy(server, options.trustedProxies, logFrom)
    yield* closeEventually(server, options.shutdownTimeout)
    return HttpServer.make({
      address,
      // The platform would also take upgrades, whose connections are beyond every bound; as ordinary requests they are not
      serve: (app, middleware): Effect.Effect<void, never, Scope.Scope> =>
        Effect.flatMap(makeHandler(middleware === undefined ? app : middleware(app)), (handler) => {
          const listener = connections.serve(handler)
          return Effect.acquireRelease(
            Effect.sync(() => void server.on("request", listener)),
            () =>
              Effect.zipRight(
                Effect.promise(() => drain(server, connections, stopping, options, logFrom)),
                Effect.sync(() => server.off("request", listener))
              )
          )
        })
    })
  })

/** Ends the listening alone: Node's own `close` would end connections as well, under requests that are on their way. */
const stopListening = (server: Server): void => {
  NetServer.prototype.close.call(server)
}

/**
 * Serves to the end what clients have begun, and lets them know. By Node's timers, like the rest of the server's bounds:
 * a test's clock that stands still must not hold it.
 */
const drain = async (
  server: Server,
  connections: Connections,
  stopping: Stopping["Type"],
  { shutdownDelay, shutdownTimeout }: ServerOptions,
  runtime: Runtime.Runtime<never>
): Promise<void> => {
  const log = (line: Effect.Effect<void>) => Runtime.runSync(runtime)(line)
  stopping.begun = true
  const delay = Duration.toMillis(shutdownDelay)
  log(Effect.logInfo(`Shutdown: not ready any more; new connections are taken for ${delay} ms (SHUTDOWN_DELAY)`))
  if (delay > 0) await passed(delay)
  // Connections are kept until here: clients that had to connect anew could meet the end of listening, which resets them
  stopListening(server)
  log(Effect.logInfo(`Shutdown: takes no more connections; requests under way: ${connections.underWay()}`))
  const grace = Duration.min(maxIdleGrace, Duration.times(shutdownTimeout, 0.1))
  const refused = await connections.drain({ grace, timeout: shutdownTimeout })
  // Only ends Node's own upkeep of connections: there is none left
  server.close()
  log(
    refused === 0
      ? Effect.logInfo("Shutdown: every request is answered, all connections are closed")
      : Effect.logWarning(`Shutdown: ${refused} requests took longer than SHUTDOWN_TIMEOUT and were refused`)
  )
}

/** Where nothing was served, and so nothing drained: closes before the server does, and starts the clock. */
const closeEventually = (server: Server, after: Duration.Duration) =>
  Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), Duration.toMillis(after)).unref()
    })
  )

/**
 * An `HttpServer` that listens when the layer is built. On shutdown it is not ready any more for `shutdownDelay`, then
 * takes no more connections and waits for requests under way, for at most `shutdownTimeout`: a request that hangs must
 * not hold the process.
 */
export const serverLayer = (options: ServerOptions) =>
  Layer.merge(Layer.scoped(HttpServer.HttpServer, listen(options)), layerContext).pipe(
    Layer.provideMerge(Layer.sync(Stopping, () => ({ begun: false })))
  )
