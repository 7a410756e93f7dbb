import type { IncomingMessage } from "node:http"
import { HttpServerError, type HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import { type BoundBroken, brokenBound, jsonBounds } from "../bounds/JsonBounds.ts"
import { fieldName, maxRefusedFields } from "../bounds/Refusals.ts"
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

const notWellFormed = /\p{Cs}/u

/**
 * The paths of what no operation takes, wherever it stands: `__proto__` as a key, which the schemas would drop without
 * a word; half of a surrogate pair, which has no UTF-8 and so can't be sent on or stored. One by one: whoever asks may
 * stop. The depth is bounded by then.
 */
function* refusedParts(value: unknown, path: ReadonlyArray<string>): Generator<ReadonlyArray<string>> {
  if (typeof value === "string") {
    if (notWellFormed.test(value)) yield path
    return
  }
  if (typeof value !== "object" || value === null) return
  for (const [key, part] of Object.entries(value)) {
    if (key === "__proto__" || notWellFormed.test(key)) {
      yield [...path, key]
    } else {
      yield* refusedParts(part, [...path, key])
    }
  }
}

/** The names of refused parts, as many as an error says. */
const refusedNames = (json: unknown): ReadonlyArray<string> => {
  const names = new Set<string>()
  for (const path of refusedParts(json, [])) {
    names.add(fieldName(path).replaceAll(/\p{Cs}/gu, "\ufffd"))
    if (names.size >= maxRefusedFields) break
  }
  return [...names]
}

const boundMessages: Record<BoundBroken["bound"], string> = {
  depth: `The request body is nested deeper than ${jsonBounds.depth} levels.`,
  members: `The request body has an array with more than ${jsonBounds.members} items, or an object with more keys than that.`,
  values: `The request body has more than ${jsonBounds.values} values.`
}

const tooMuch = ({ bound, path }: BoundBroken): ValidationFailed =>
  new ValidationFailed({
    message: boundMessages[bound],
    fields: path.length === 0 ? [] : [fieldName(path).replaceAll(/\p{Cs}/gu, "\ufffd")]
  })

const parse = (bytes: Buffer): Effect.Effect<unknown, ValidationFailed> =>
  Effect.suspend((): Effect.Effect<unknown, ValidationFailed> => {
    const broken = brokenBound(bytes)
    if (broken !== null) return tooMuch(broken)
    return Effect.flatMap(decode(bytes), (text) =>
      Effect.try({
        try: (): unknown => (text === "" ? null : JSON.parse(text)),
        catch: () => new ValidationFailed({ message: "The request body is not valid JSON." })
      })
    )
  }).pipe(
    Effect.flatMap((json) => {
      const fields = refusedNames(json)
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
          Effect.cached(readBytes(request, maxJsonBytes).pipe(Effect.flatMap(parse), Effect.mapError(refuse)))
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
