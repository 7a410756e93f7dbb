import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { listening } from "../harness/Listening.ts"

export interface ProviderCall {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: URLSearchParams
}

/** How the provider answers a call: with an answer, or by misbehaving on the connection itself. */
export type Behaviour = (call: ProviderCall, response: ServerResponse) => void

export interface ScriptedProvider {
  readonly url: URL
  readonly calls: ReadonlyArray<ProviderCall>
  readonly behave: (behaviour: Behaviour) => void
}

export const replying =
  (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (_, response) => {
    const json = typeof body === "string" ? body : JSON.stringify(body)
    const type = typeof body === "string" ? "text/html" : "application/json"
    response.writeHead(status, { "content-type": type, "request-id": "req_provider", ...headers }).end(json)
  }

export const silent: Behaviour = () => {}

/** Sends a byte now and then, for ever: never silent long enough for a timeout of silence. */
export const dripping: Behaviour = (_, response) => {
  response.writeHead(200, { "content-type": "application/json" })
  const timer = setInterval(() => response.write(" "), 20)
  response.on("close", () => clearInterval(timer))
}

/** Sends an answer without an end, as fast as it is read. */
export const flooding: Behaviour = (_, response) => {
  response.writeHead(200, { "content-type": "application/json" })
  const spaces = Buffer.alloc(1024 * 1024, " ")
  const write = () => {
    while (!response.destroyed && response.write(spaces));
  }
  response.on("drain", write)
  write()
}

export const resetting: Behaviour = (_, response) => {
  response.socket?.resetAndDestroy()
}

/** Starts a provider on an address of this machine; it ends with the scope, open connections included. */
export const makeScriptedProviderAt = (host: string) =>
  Effect.gen(function* () {
    const calls: Array<ProviderCall> = []
    let behaviour: Behaviour = replying(500, {})
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const call = {
          method: request.method ?? "",
          path: request.url ?? "",
          headers: request.headers,
          body: new URLSearchParams(Buffer.concat(chunks).toString("utf8"))
        }
        calls.push(call)
        behaviour(call, response)
      })
    })
    const port = yield* listening(server, host)
    const provider: ScriptedProvider = {
      url: new URL(`http://${host.includes(":") ? `[${host}]` : host}:${port}`),
      calls,
      behave: (next) => {
        behaviour = next
      }
    }
    return provider
  })

export const makeScriptedProvider = makeScriptedProviderAt("127.0.0.1")
