import type { IncomingMessage } from "node:http"
import { HttpServerError, type HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import { PayloadTooLarge, UnsupportedMediaType, ValidationFailed } from "../Errors.ts"

/**
 * Request bodies within bounds. The platform's own bound cuts the connection, so that the caller never sees the 413;
 * here what is too much is read and thrown away, as far as that is reasonable, and then answered.
 */

/** The largest JSON body that is read: 256 KiB (`payload_too_large`). */
export const maxJsonBytes = 256 * 1024

/** How much beyond its bound a body is read and thrown away, so that the answer reaches a caller that is still sending. */
const maxDiscardedBytes = 16 * 1024 * 1024

/** The sender went away before the body was complete: there is nobody to answer. */
const incomplete = (request: HttpServerRequest.HttpServerRequest, cause: unknown) =>
  new HttpServerError.RequestError({ request, reason: "Decode", description: "The body is incomplete", cause })

/** The exact bytes of a request's body, at most `limit` of them. May be run once. */
export const readBytes = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number
): Effect.Effect<Buffer, PayloadTooLarge | HttpServerError.RequestError> =>
  Effect.async((resume) => {
    const source: IncomingMessage = NodeHttpServerRequest.toIncomingMessage(request)
    const chunks: Array<Buffer> = []
    let length = 0
    const tooLarge = new PayloadTooLarge({ message: `The request body is larger than ${limit} bytes.` })
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length <= limit) {
        chunks.push(chunk)
      } else if (length > limit + maxDiscardedBytes) {
        finish(Effect.fail(tooLarge))
      }
    }
    const onEnd = () => finish(length > limit ? Effect.fail(tooLarge) : Effect.succeed(Buffer.concat(chunks)))
    const onLost = (cause?: unknown) => finish(Effect.fail(incomplete(request, cause)))
    const finish = (result: Effect.Effect<Buffer, PayloadTooLarge | HttpServerError.RequestError>) => {
      source.off("data", onData).off("end", onEnd).off("error", onLost).off("close", onLost)
      resume(result)
    }
    source.on("data", onData).on("end", onEnd).on("error", onLost).on("close", onLost)
  })

/** Strict, since a replaced character would be signed for, stored and sent on as if the caller had sent it. */
const utf8 = new TextDecoder("utf-8", { fatal: true })

const decode = (bytes: Buffer): Effect.Effect<string, ValidationFailed> =>
  Effect.try({
    try: () => utf8.decode(bytes),
    catch: () => new ValidationFailed({ message: "The request body is not valid UTF-8." })
  })

/**
 * The same request with its JSON bounded and checked, and every other reading of its body refused: an operation that
 * takes something else reads the bytes itself. What is refused is a `RequestError` whose `cause` is the documented
 * error, as the platform's handlers know no other.
 */
export const withBoundedJson = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const refuse = (cause: unknown) => new HttpServerError.RequestError({ request, reason: "Decode", cause })
  const text = Effect.runSync(
    Effect.cached(Effect.mapError(Effect.flatMap(readBytes(request, maxJsonBytes), decode), refuse))
  )
  const json = Effect.tryMap(text, {
    try: (content): unknown => (content === "" ? null : JSON.parse(content)),
    catch: () => refuse(new ValidationFailed({ message: "The request body is not valid JSON." }))
  })
  const notJson = { value: Effect.suspend(() => Effect.fail(refuse(new UnsupportedMediaType()))) }
  return Object.create(request, {
    json: { value: json },
    text: notJson,
    urlParamsBody: notJson,
    multipart: notJson,
    arrayBuffer: notJson
  })
}
