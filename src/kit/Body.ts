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
    const tooLarge = () => new PayloadTooLarge({ message: `The request body is larger than ${limit} bytes.` })
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length <= limit) {
        chunks.push(chunk)
      } else if (length > limit + maxDiscardedBytes) {
        finish(tooLarge())
      }
    }
    const onEnd = () => finish(length > limit ? tooLarge() : Effect.succeed(Buffer.concat(chunks)))
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

/** How deep a JSON body may be nested; none of the API's own goes deeper than 5. */
const maxDepth = 32

const notWellFormed = /\p{Cs}/u

/**
 * The paths of what no operation takes, wherever it stands: nesting beyond bounds, on which what walks a body would
 * overflow its stack; `__proto__` as a key, which the schemas would drop without a word; half of a surrogate pair,
 * which has no UTF-8 and so can't be sent on or stored.
 */
const refusedParts = (value: unknown, path: ReadonlyArray<string> = []): ReadonlyArray<string> => {
  if (typeof value === "string") {
    return notWellFormed.test(value) ? [path.join(".")] : []
  }
  if (typeof value !== "object" || value === null) {
    return []
  }
  if (path.length >= maxDepth) {
    return [path.slice(0, 3).join(".")]
  }
  return Object.entries(value).flatMap(([key, part]) =>
    key === "__proto__" || notWellFormed.test(key)
      ? [[...path, key].join(".").replaceAll(/\p{Cs}/gu, "\ufffd")]
      : refusedParts(part, [...path, key])
  )
}

const parse = (text: string): Effect.Effect<unknown, ValidationFailed> =>
  Effect.try({
    try: (): unknown => (text === "" ? null : JSON.parse(text)),
    catch: () => new ValidationFailed({ message: "The request body is not valid JSON." })
  }).pipe(
    Effect.flatMap((json) => {
      const fields = [...new Set(refusedParts(json))]
      return fields.length === 0 ? Effect.succeed(json) : new ValidationFailed({ fields })
    })
  )

/** Where a body's type is said, it must be JSON's own; a body without one is judged by its bytes. */
const isJson = (contentType: string | undefined): boolean =>
  contentType === undefined || /^application\/json\s*(;|$)/i.test(contentType.trim())

/**
 * The same request with its JSON bounded and checked, and every other reading of its body refused: an operation that
 * takes something else reads the bytes itself. What is refused is a `RequestError` whose `cause` is the documented
 * error, as the platform's handlers know no other.
 */
export const withBoundedJson = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const refuse = (cause: unknown) => new HttpServerError.RequestError({ request, reason: "Decode", cause })
  const unsupported = Effect.suspend(() => Effect.fail(refuse(new UnsupportedMediaType())))
  let reading: Effect.Effect<unknown, HttpServerError.RequestError> | undefined
  const json = Effect.suspend(() => {
    // Once, and only where somebody asks
    reading ??= isJson(request.headers["content-type"])
      ? Effect.runSync(
          Effect.cached(
            readBytes(request, maxJsonBytes).pipe(
              Effect.flatMap(decode),
              Effect.flatMap(parse),
              Effect.mapError(refuse)
            )
          )
        )
      : unsupported
    return reading
  })
  const notJson = { value: unsupported }
  return Object.create(request, {
    json: { value: json },
    text: notJson,
    urlParamsBody: notJson,
    multipart: notJson,
    arrayBuffer: notJson
  })
}
