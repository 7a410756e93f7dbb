import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, FiberSet, type Scope } from "effect"
import { EmulatorError } from "./EmulatorError.ts"
import { errorReply, type HttpReply, type HttpRequest } from "./Http.ts"
import { newId } from "./Ids.ts"
import { refuse } from "./ProviderError.ts"
import { apiVersion } from "./Versions.ts"

/** Answers every request; it cannot fail. */
export type Handler = (request: HttpRequest) => Effect.Effect<HttpReply>

export interface ServeOptions {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
}

const maximumBody = 1024 * 1024

const closeGraceMilliseconds = 1_000

const dripMilliseconds = 50

/** Longer than clients keep idle connections, so that none is closed just as a request is sent. */
const keepAliveMilliseconds = 60_000

const bodyOf = (message: IncomingMessage): Effect.Effect<string, "too large" | "aborted"> =>
  Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    let size = 0
    message.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size <= maximumBody) chunks.push(chunk)
      else resume(Effect.fail("too large"))
    })
    message.on("end", () => resume(Effect.succeed(Buffer.concat(chunks).toString("utf8"))))
    message.on("close", () => resume(Effect.fail("aborted")))
  })

const requestOf = (message: IncomingMessage, id: string, body: string): HttpRequest => {
  const target = message.url ?? "/"
  const mark = target.indexOf("?")
  return {
    id,
    method: message.method ?? "GET",
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? "" : target.slice(mark + 1),
    header: (name) => {
      const value = message.headers[name]
      return Array.isArray(value) ? value.join(", ") : value
    },
    body
  }
}

const headersOf = (id: string, headers: HttpReply["headers"]) => ({
  ...headers,
  "request-id": id,
  "stripe-version": apiVersion
})

/** Sends spaces, which JSON allows before its value, until the client gives up or the server closes. */
const drip = (response: ServerResponse, id: string, { headers, status }: HttpReply): void => {
  response.writeHead(status, headersOf(id, headers))
  const dripping = setInterval(() => response.write(" "), dripMilliseconds)
  response.once("close", () => clearInterval(dripping))
}

const write = (response: ServerResponse, id: string, reply: HttpReply): Effect.Effect<void> =>
  Effect.sync(() => {
    switch (reply.manner) {
      case "silent":
        return
      case "reset":
        response.socket?.resetAndDestroy()
        return
      case "dripping":
        return drip(response, id, reply)
      default: {
        const bytes = Buffer.from(reply.body)
        response.writeHead(reply.status, { ...headersOf(id, reply.headers), "content-length": bytes.length })
        response.end(bytes)
      }
    }
  })

const tooLarge: HttpReply = {
  ...errorReply(refuse({ status: 413, message: `A request's body can have at most ${maximumBody} bytes.` })),
  headers: { "content-type": "application/json", connection: "close" }
}

const exchange = (handler: Handler, message: IncomingMessage, response: ServerResponse): Effect.Effect<void> => {
  const id = newId("req_")
  return bodyOf(message).pipe(
    Effect.flatMap((body) => handler(requestOf(message, id, body))),
    Effect.flatMap((reply) => write(response, id, reply)),
    // After an abort there is nobody to answer
    Effect.catchAll((reason) => (reason === "aborted" ? Effect.void : write(response, id, tooLarge)))
  )
}

const urlOf = (host: string, { port }: AddressInfo): string => {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`
}

const listen = (server: Server, { host, port }: ServeOptions): Effect.Effect<AddressInfo, EmulatorError> =>
  Effect.async((resume) => {
    server.once("error", (cause) =>
      resume(
        Effect.fail(
          new EmulatorError({ reason: "CannotListen", message: `The emulator cannot listen on ${host}:${port}`, cause })
        )
      )
    )
    server.listen(port, host, () => {
      const address = server.address()
      resume(
        address === null || typeof address === "string"
          ? Effect.dieMessage("A TCP server has a TCP address")
          : Effect.succeed(address)
      )
    })
  })

const close = (server: Server): Effect.Effect<void> =>
  Effect.async((resume) => {
    const cut = setTimeout(() => server.closeAllConnections(), closeGraceMilliseconds)
    server.close(() => {
      clearTimeout(cut)
      resume(Effect.void)
    })
    server.closeIdleConnections()
  })

/** Returns the URL. Closing takes little more than a second, even with open keep-alive connections. */
export const serve = (
  options: ServeOptions,
  handlerAt: (url: string) => Handler
): Effect.Effect<string, EmulatorError, Scope.Scope> =>
  Effect.gen(function* () {
    const run = yield* FiberSet.makeRuntime<never>()
    const server = createServer({ keepAliveTimeout: keepAliveMilliseconds })
    server.on("connection", (socket) => socket.on("error", () => {}))
    const address = yield* Effect.acquireRelease(listen(server, options), () => close(server))
    const url = urlOf(options.host, address)
    const handler = handlerAt(url)
    server.on("request", (message, response) => void run(exchange(handler, message, response)))
    return url
  })
