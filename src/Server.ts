import { createServer, type Server } from "node:http"
import type { Duplex } from "node:stream"
import { layer as nodeHttpServerLayer } from "@effect/platform-node/NodeHttpServer"
import { Duration, Effect, Layer } from "effect"
import { errorBody, ValidationFailed } from "./Errors.ts"
import { newRequestId } from "./kit/Request.ts"

/** Node's HTTP server with bounds on what a client can make it wait for. */

/** How long a client may take to send its head, and its whole request. */
const headersTimeout = Duration.seconds(15)
const requestTimeout = Duration.seconds(60)

/** Answers what is not HTTP, or too large a head, in the documented form: no handler ever sees such a request. */
const refuse = (socket: Duplex): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const requestId = newRequestId()
  const error = new ValidationFailed({ message: "The request is not valid HTTP, or its headers are too large." })
  const body = JSON.stringify(errorBody(error, requestId))
  socket.end(
    [
      `HTTP/1.1 ${error.status} Unprocessable Content`,
      "content-type: application/json",
      `content-length: ${Buffer.byteLength(body)}`,
      `request-id: ${requestId}`,
      "connection: close",
      "",
      body
    ].join("\r\n")
  )
}

const answerClientErrors = (server: Server): Server =>
  server
    .on("clientError", (_error, socket) => refuse(socket))
    .on("connect", (_request, socket) => refuse(socket))
    // Node answers an expectation that it does not know with an empty 417; such a header may be ignored
    .on("checkExpectation", (request, response) => server.emit("request", request, response))

/**
 * An `HttpServer` that listens when the layer is built. On shutdown it takes no more connections and waits for open
 * requests, for at most `shutdownTimeout`: a request that hangs must not hold the process.
 */
export const serverLayer = (options: {
  readonly host: string
  readonly port: number
  readonly shutdownTimeout: Duration.Duration
}) =>
  Layer.unwrapEffect(
    Effect.sync(() => {
      const server = answerClientErrors(
        createServer({
          headersTimeout: Duration.toMillis(headersTimeout),
          requestTimeout: Duration.toMillis(requestTimeout),
          connectionsCheckingInterval: 5000,
          // Node would answer with an empty 400; nothing here goes by the host
          requireHostHeader: false
        })
      )
      return nodeHttpServerLayer(() => server, { host: options.host, port: options.port }).pipe(
        // Closes before the server does, and starts the clock
        (layer) => Layer.provideMerge(closeEventually(server, options.shutdownTimeout), layer)
      )
    })
  )

const closeEventually = (server: Server, after: Duration.Duration) =>
  Layer.scopedDiscard(
    Effect.addFinalizer(() =>
      Effect.sync(() => {
        server.closeIdleConnections()
        setTimeout(() => server.closeAllConnections(), Duration.toMillis(after)).unref()
      })
    )
  )
