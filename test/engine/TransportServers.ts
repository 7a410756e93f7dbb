/** Consumers to send to: real servers on loopback, which also say what reached them. */
import { readFileSync } from "node:fs"
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from "node:http"
import { createServer as createHttpsServer } from "node:https"
import { createServer as createTcpServer, type Server, type Socket } from "node:net"
import type { TlsOptions } from "node:tls"
import { Duration, Effect, Layer, type Scope } from "effect"
import { DnsResolver } from "../../src/engine/transport/DestinationUrl.ts"
import { Transport, type TransportOptions, type TransportRequest } from "../../src/engine/transport/Transport.ts"
import { listening } from "../harness/Listening.ts"

const fixture = (name: string): string => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8")

export const certificate = fixture("localhost.cert.pem")

export interface Consumer {
  readonly port: number
  /** Every connection that was made, closed ones included. */
  readonly sockets: ReadonlyArray<Socket>
  /** Every request that was received, in an http consumer. */
  readonly requests: ReadonlyArray<ReceivedRequest>
}

export interface ReceivedRequest {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly rawHeaders: ReadonlyArray<string>
  readonly body: Buffer
}

const consuming = (makeServer: (requests: Array<ReceivedRequest>) => Server, host: string) =>
  Effect.gen(function* () {
    const requests: Array<ReceivedRequest> = []
    const sockets: Array<Socket> = []
    const server = makeServer(requests).on("connection", (socket: Socket) => sockets.push(socket))
    const consumer: Consumer = { port: yield* listening(server, host), sockets, requests }
    return consumer
  })

/** A consumer that does what `onConnection` does with the bare connection. */
export const tcpConsumer = (
  onConnection: (socket: Socket) => void,
  host = "127.0.0.1"
): Effect.Effect<Consumer, never, Scope.Scope> =>
  consuming(() => createTcpServer({ noDelay: true }, onConnection), host)

/** A consumer that answers each request with exactly these bytes, once the request's head has arrived. */
export const rawConsumer = (answer: string | Buffer, close: boolean): Effect.Effect<Consumer, never, Scope.Scope> =>
  tcpConsumer((socket) => {
    socket.on("data", (bytes) => {
      if (!bytes.includes("POST ")) return
      socket.write(answer)
      if (close) socket.end()
    })
  })

const recording =
  (requests: Array<ReceivedRequest>, handler: RequestListener): RequestListener =>
  (request, response) => {
    void received(request).then((complete) => {
      requests.push(complete)
      handler(request, response)
    })
  }

const received = async (request: IncomingMessage): Promise<ReceivedRequest> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  const { method, url: path, rawHeaders } = request
  return { method, path, rawHeaders, body: Buffer.concat(chunks) }
}

/** A consumer that reads the whole request and then answers as `handler` does. */
export const httpConsumer = (
  handler: RequestListener,
  host = "127.0.0.1"
): Effect.Effect<Consumer, never, Scope.Scope> =>
  consuming((requests) => createHttpServer(recording(requests, handler)), host)

/** The same by https, with a certificate for the name `localhost`. */
export const httpsConsumer = (
  handler: RequestListener,
  options: TlsOptions = {}
): Effect.Effect<Consumer, never, Scope.Scope> =>
  consuming(
    (requests) =>
      createHttpsServer(
        { cert: certificate, key: fixture("localhost.key.pem"), ...options },
        recording(requests, handler)
      ),
    "127.0.0.1"
  )

/** The transport with the real resolver, or with another. */
export const transport = (
  options: TransportOptions = {},
  resolver: Layer.Layer<DnsResolver> = DnsResolver.layer
): Layer.Layer<Transport> => Transport.layer(options).pipe(Layer.provide(resolver))

/** Makes an attempt; a local destination is allowed unless said otherwise. */
export const post = (url: string, request: Partial<TransportRequest> = {}) =>
  Effect.flatMap(Transport, ({ send }) =>
    send({
      url,
      body: '{"id":"svc_evt_1"}',
      headers: { "content-type": "application/json" },
      allowLocal: true,
      ...request
    })
  )

/** Waits until the condition holds; the test's own time-out ends a wait in vain. */
export const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.delay(until(condition), Duration.millis(2))))
