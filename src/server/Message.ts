import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { Readable } from "node:stream"
import type { HttpServerRequest } from "@effect/platform"

/** Messages of `fetch`-style requests, by the request: a body can be read only once. */
const made = new WeakMap<Request, IncomingMessage>()

/** A `fetch`-style request as one of Node's messages; its body is read when the message's is. */
const fromRequest = (request: Request): IncomingMessage => {
  const known = made.get(request)
  if (known !== undefined) return known
  const message = new IncomingMessage(new Socket())
  message.headers = Object.fromEntries(request.headers)
  const body = request.body === null ? Readable.from([]) : Readable.from(request.body)
  body
    .on("data", (chunk: Uint8Array) => {
      if (!message.push(Buffer.from(chunk))) body.pause()
    })
    .on("end", () => message.push(null))
    .on("error", (cause) => message.destroy(cause))
    .pause()
  message._read = () => void body.resume()
  made.set(request, message)
  return message
}

/** Node's message of a request: its own if a Node server received it, or one made of a `fetch`-style request. */
export const messageOf = ({ source }: HttpServerRequest.HttpServerRequest): IncomingMessage => {
  if (source instanceof IncomingMessage) return source
  if (source instanceof Request) return fromRequest(source)
  throw new Error("A request comes from Node's HTTP server or is a Request")
}
