import { IncomingMessage, type ServerResponse } from "node:http"
import { Socket } from "node:net"
import { Readable } from "node:stream"
import { HttpMethod, HttpServerError, type HttpServerRequest } from "@effect/platform"
import { Data, Effect, Predicate } from "effect"
import { type BoundBroken, brokenBound, jsonBounds } from "../platform/bounds/JsonBounds.ts"
import { boundedFields, fieldName, maxRefusedFields, type Reasons, refusal } from "../platform/bounds/Refusals.ts"
import { enumerated } from "../platform/bounds/Rules.ts"
import {
  type HeadersTooLarge,
  isApiError,
  PayloadTooLarge,
  type RequestTimeout,
  ServiceUnavailable,
  UnsupportedMediaType,
  ValidationFailed
} from "../platform/errors/Errors.ts"

/**
 * Bounds the memory of all request bodies together. Each body is bounded, and so is the number of connections, but a
 * thousand unfinished bodies of a megabyte are a gigabyte. If there is no room, the body that has been arriving for
 * longest is dropped and its request refused: slow senders, which hold memory, make room for fast ones.
 */

const MiB = 1024 * 1024

/**
 * How many bytes the bodies of callers with a valid credential may hold in a process, and those of everybody else:
 * neither group uses the other's memory. One client address has at most half of each.
 */
export const bodyLimits = { known: 96 * MiB, strangers: 32 * MiB } as const

/** A body was dropped to make room for others. Not logged for each request: they come by the thousand. */
export class BodyDropped extends ServiceUnavailable {
  constructor() {
    super({
      message: "Request bodies fill the memory available to them; try again, on a new connection.",
      retryAfter: "1 second"
    })
  }
}

class Room {
  held = 0
  /** The bodies that hold something and have not arrived completely, the oldest first: only these are dropped. */
  readonly arriving = new Set<BodyShare>()
  readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }
}

/** The budgets of one kind of caller: in total and per address. */
class Kind {
  readonly #all: Room
  readonly #byAddress = new Map<string, Room>()

  constructor(limit: number) {
    this.#all = new Room(limit)
  }

  /** The address's own budget comes first: if that is full, no other address loses a body. */
  roomsOf(address: string): ReadonlyArray<Room> {
    const own = this.#byAddress.get(address) ?? new Room(this.#all.limit / 2)
    this.#byAddress.set(address, own)
    return [own, this.#all]
  }

  tidy(address: string): void {
    const own = this.#byAddress.get(address)
    if (own?.held === 0 && own.arriving.size === 0) this.#byAddress.delete(address)
  }
}

interface Request {
  readonly response: ServerResponse
  readonly address: string
  /** Refuses the request with this error, as the last one of its connection. */
  readonly refuse: (error: BodyDropped) => void
}

const shares = new WeakMap<IncomingMessage, BodyShare>()

/** The share of a request's body; none if it has no body, or did not come through a server of ours. */
export const bodyShareOf = (message: IncomingMessage): BodyShare | undefined => shares.get(message)

export class BodyBudget {
  readonly known = new Kind(bodyLimits.known)
  readonly strangers = new Kind(bodyLimits.strangers)

  /** Registers a request's body; `readMessage` then uses its share. */
  admit(message: IncomingMessage, request: Request): void {
    shares.set(message, new BodyShare(this, request))
  }
}

/**
 * One body's share of the memory, from its first byte until its request is answered: the bytes are in use until then.
 */
export class BodyShare {
  #kind: Kind
  #rooms: ReadonlyArray<Room> = []
  #bytes = 0
  #onDrop = () => {}
  readonly #budget: BodyBudget
  readonly #request: Request

  constructor(budget: BodyBudget, request: Request) {
    this.#budget = budget
    this.#kind = budget.strangers
    this.#request = request
  }

  /** Records that the caller's credential is valid. Call it before the body is read. */
  recognize(): void {
    this.#kind = this.#budget.known
  }

  /** @param onDrop called if the body is dropped: its reader releases the bytes and refuses the request */
  begin(onDrop: () => void): void {
    this.#onDrop = onDrop
    this.#request.response.once("close", () => {
      this.release()
      this.#kind.tidy(this.#request.address)
    })
  }

  /** Makes room by dropping the oldest bodies, at last this one. */
  hold(bytes: number): boolean {
    if (this.#bytes === 0) this.#rooms = this.#kind.roomsOf(this.#request.address)
    const more = bytes - this.#bytes
    for (const room of this.#rooms) {
      while (room.held + more > room.limit) {
        const [oldest = this] = room.arriving
        oldest.#drop()
        if (oldest === this) return false
      }
    }
    for (const room of this.#rooms) {
      room.held += more
      room.arriving.add(this)
    }
    this.#bytes = bytes
    return true
  }

  /** Marks the body as complete: it can no longer be dropped. */
  complete(): void {
    for (const { arriving } of this.#rooms) arriving.delete(this)
  }

  /** Refuses the request of a body that was dropped. */
  refuse(): void {
    this.#request.refuse(new BodyDropped())
  }

  #drop(): void {
    this.release()
    this.#onDrop()
  }

  release(): void {
    this.complete()
    for (const room of this.#rooms) room.held -= this.#bytes
    this.#rooms = []
    this.#bytes = 0
  }
}

/**
 * Request bodies within bounds. The platform's own bound cuts the connection, so that the caller never sees the 413;
 * here the excess is read and discarded, up to a limit, and then answered.
 */

/** The largest JSON body that is read: 256 KiB (`payload_too_large`). */
export const maxJsonBytes = 256 * 1024

/** So that the answer reaches a caller that is still sending. */
const maxDiscardedBytes = 16 * 1024 * 1024

/** Why a request can't be read: it took too long, the process is stopping, or HTTP or the server does not allow it. */
export type UnreadableRequest =
  | RequestTimeout
  | HeadersTooLarge
  | PayloadTooLarge
  | ValidationFailed
  | ServiceUnavailable

/**
 * The event that the server emits on a request, with an `UnreadableRequest`, if the rest of its body will not arrive:
 * it took too long, or could not be read. The connection ends after the answer.
 */
export const bodyRefused = Symbol("connected-payments/server/bodyRefused")

const incomplete = "The body is incomplete"

export class MalformedJson extends ValidationFailed {}

/** The sender left before the end of the body. */
export class BodyLost extends Data.TaggedError("BodyLost")<{ readonly cause: unknown }> {}

export const isIncompleteBody = (failure: unknown): boolean =>
  failure instanceof BodyLost || (failure instanceof HttpServerError.RequestError && failure.description === incomplete)

/** A closed port: what is transferred to it is freed at once. */
const { port1: freed } = new MessageChannel()
freed.close()

/** Left to the garbage collector, dropped bytes took several times the body budget. */
const free = (bytes: Buffer): void => {
  const { buffer } = bytes
  // Otherwise the memory is shared with other bytes
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length) freed.postMessage(null, [buffer])
}

/** The bytes of a page: small, so that many bodies may arrive slowly, a few bytes of each at a time. */
const pageSize = 8 * 1024

/** Pages for reuse. Left to the garbage collector, pages of dropped bodies took several times the body budget. */
const freePages: Array<Buffer> = []
const maxFreePages = bodyLimits.strangers / pageSize

/** A body's bytes, in pages: kept as separate chunks, a body sent byte by byte would take a hundred times its size. */
class Gathered {
  /** The only chunk so far. Most bodies arrive as one. */
  #first: Buffer | undefined
  #pages: Array<Buffer> = []
  #length = 0

  /** How much memory is needed once a chunk is added. */
  sizeWith(chunk: Buffer): number {
    const length = this.#length + chunk.length
    return this.#length === 0 ? length : pageSize * Math.ceil(length / pageSize)
  }

  add(chunk: Buffer): void {
    if (this.#length === 0) {
      this.#first = chunk
      this.#length = chunk.length
      return
    }
    const first = this.#first
    if (first !== undefined) {
      this.#first = undefined
      this.#length = 0
      this.#write(first)
    }
    this.#write(chunk)
  }

  #write(chunk: Buffer): void {
    for (let written = 0; written < chunk.length; ) {
      const place = this.#length % pageSize
      if (place === 0) this.#pages.push(freePages.pop() ?? Buffer.allocUnsafeSlow(pageSize))
      const copied = chunk.copy(this.#pages.at(-1) ?? chunk, place, written)
      written += copied
      this.#length += copied
    }
    free(chunk)
  }

  /** Frees the bytes; keeps pages for reuse, up to `maxFreePages`. */
  free(): void {
    for (const page of this.#pages) if (freePages.length < maxFreePages) freePages.push(page)
    if (this.#first !== undefined) free(this.#first)
    this.#pages = []
    this.#first = undefined
    this.#length = 0
  }

  take(): Buffer {
    const bytes = this.#first ?? Buffer.concat(this.#pages, this.#length)
    this.#first = undefined
    this.free()
    return bytes
  }
}

/** Refuses a compressed body: its bytes are not what its content type says. */
const requirePlain = ({ headers }: IncomingMessage): Effect.Effect<void, UnsupportedMediaType> =>
  /^\s*(?:identity\s*)?$/i.test(headers["content-encoding"] ?? "")
    ? Effect.void
    : new UnsupportedMediaType({ message: "Send the request body uncompressed, without content-encoding." })

/** How long the sender of a dropped body may keep sending, so that the refusal reaches it. */
const partingMillis = 1000

export const readMessage = (
  source: IncomingMessage,
  limit: number
): Effect.Effect<Buffer, UnreadableRequest | UnsupportedMediaType | BodyLost> =>
  Effect.zipRight(requirePlain(source), readPlain(source, limit))

const readPlain = (source: IncomingMessage, limit: number): Effect.Effect<Buffer, UnreadableRequest | BodyLost> =>
  Effect.async((resume) => {
    const share = bodyShareOf(source)
    let gathered: Gathered | undefined = new Gathered()
    let length = 0
    let parting: NodeJS.Timeout | undefined
    const tooLarge = () => new PayloadTooLarge({ message: `The request body is larger than ${limit} bytes.` })
    const letGo = () => {
      gathered?.free()
      gathered = undefined
    }
    const onDrop = () => {
      letGo()
      parting = setTimeout(() => share?.refuse(), partingMillis)
    }
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > limit) {
        letGo()
        share?.release()
        if (length > limit + maxDiscardedBytes) finish(tooLarge())
      } else if (gathered !== undefined && share?.hold(gathered.sizeWith(chunk)) !== false) {
        gathered.add(chunk)
        return
      }
      free(chunk)
    }
    const onEnd = () => {
      share?.complete()
      if (length > limit) finish(tooLarge())
      else if (gathered === undefined) share?.refuse()
      else finish(Effect.succeed(gathered.take()))
    }
    const onLost = (cause?: unknown) => finish(new BodyLost({ cause }))
    const onRefused = (error: UnreadableRequest) => finish(Effect.fail(error))
    const finish = (result: Effect.Effect<Buffer, UnreadableRequest | BodyLost>) => {
      clearTimeout(parting)
      letGo()
      source.off("data", onData).off("end", onEnd).off("error", onLost).off("close", onLost).off(bodyRefused, onRefused)
      resume(result)
    }
    share?.begin(onDrop)
    source.on("data", onData).on("end", onEnd).on("error", onLost).on("close", onLost).on(bodyRefused, onRefused)
  })

/** The exact bytes of a request's body, at most `limit`. May be run once. */
export const readBytes = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number
): Effect.Effect<Buffer, UnreadableRequest | UnsupportedMediaType | HttpServerError.RequestError> =>
  Effect.catchTag(
    readMessage(messageOf(request), limit),
    "BodyLost",
    ({ cause }) => new HttpServerError.RequestError({ request, reason: "Decode", description: incomplete, cause })
  )

/** Strict, since a replacement character would be signed, stored and passed on as if the caller had sent it. */
const utf8 = new TextDecoder("utf-8", { fatal: true })

const decode = (bytes: Buffer): Effect.Effect<string, ValidationFailed> =>
  Effect.try({
    try: () => utf8.decode(bytes),
    catch: () => new MalformedJson({ message: "The request body is not valid UTF-8." })
  })

const notWellFormed = /\p{Cs}/u
const halfPair = "has half of a surrogate pair, which is no character; send text in UTF-8"

/** Whether an object's keys are checked by a dedicated parser with its own error code: see `Filters.ts`. */
const isJudgedByKey = (path: ReadonlyArray<string>): boolean => path.length === 1 && path[0] === "filters"

/**
 * The paths of parts that no operation accepts: `__proto__` as a key, which the schemas would drop silently, and half
 * of a surrogate pair, which has no UTF-8 form and so can't be forwarded or stored. A generator, so that the caller can
 * stop early. The depth has been checked before.
 */
function* refusedParts(
  value: unknown,
  path: ReadonlyArray<string>
): Generator<readonly [path: ReadonlyArray<string>, reason: string]> {
  if (typeof value === "string") {
    if (notWellFormed.test(value)) yield [path, halfPair]
    return
  }
  if (typeof value !== "object" || value === null) return
  for (const [key, part] of Object.entries(value)) {
    if (key === "__proto__" && !isJudgedByKey(path)) {
      yield [[...path, key], "is a key that no field has"]
    } else if (notWellFormed.test(key)) {
      yield [[...path, key], halfPair]
    } else {
      yield* refusedParts(part, [...path, key])
    }
  }
}

/** The name of a place in a body, safe to show in an answer. */
const nameOf = (path: ReadonlyArray<PropertyKey>): string => fieldName(path).replaceAll(/\p{Cs}/gu, "\ufffd")

/** The refused parts, up to the number that an error lists. */
const refusalsOf = (json: unknown): Reasons => {
  const reasons = new Map<string, string>()
  for (const [path, reason] of refusedParts(json, [])) {
    reasons.set(nameOf(path), reason)
    if (reasons.size >= maxRefusedFields) break
  }
  return reasons
}

const boundReasons: Record<BoundBroken["bound"], string> = {
  depth: `is nested too deep: a request body has at most ${jsonBounds.depth} levels`,
  members: `has more than ${jsonBounds.members} items or keys`,
  values: `is one too many: a request body has at most ${jsonBounds.values} values`
}

const parse = (bytes: Buffer): Effect.Effect<unknown, ValidationFailed> =>
  Effect.suspend((): Effect.Effect<unknown, ValidationFailed> => {
    const broken = brokenBound(bytes)
    if (broken !== null)
      return new ValidationFailed(refusal(new Map([[nameOf(broken.path), boundReasons[broken.bound]]])))
    return Effect.flatMap(decode(bytes), (text) =>
      Effect.try({
        try: (): unknown => (text === "" ? null : JSON.parse(text)),
        catch: () => new MalformedJson({ message: "The request body is not valid JSON." })
      })
    )
  }).pipe(
    Effect.flatMap((json) => {
      const reasons = refusalsOf(json)
      return reasons.size === 0 ? Effect.succeed(json) : new ValidationFailed(refusal(reasons))
    })
  )

/** Requires a content type, unless the body is empty. */
const requireJson = (contentType: string | undefined, bytes: Buffer): Effect.Effect<Buffer, UnsupportedMediaType> =>
  contentType === undefined && bytes.length > 0 ? new UnsupportedMediaType() : Effect.succeed(bytes)

const mayBeJson = (contentType: string | undefined): boolean =>
  contentType === undefined || /^application\/json\s*(;|$)/i.test(contentType.trim())

/**
 * The request with its JSON bounded and checked, and every other way to read its body refused: operations with other
 * bodies read the bytes themselves. A refusal is a `RequestError` whose `cause` is the documented error, since the
 * platform's handlers know no other.
 */
export const withBoundedJson = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const refuse = (cause: unknown) => new HttpServerError.RequestError({ request, reason: "Decode", cause })
  const unsupported = Effect.suspend(() => Effect.fail(refuse(new UnsupportedMediaType())))
  let reading: Effect.Effect<unknown, HttpServerError.RequestError> | undefined
  const json = Effect.suspend(() => {
    // Only once, and only if it is needed
    const contentType = request.headers["content-type"]
    reading ??= mayBeJson(contentType)
      ? Effect.runSync(
          Effect.cached(
            readBytes(request, maxJsonBytes).pipe(
              Effect.flatMap((bytes) => requireJson(contentType, bytes)),
              Effect.flatMap(parse),
              Effect.mapError((error) => (isApiError(error) ? refuse(error) : error))
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

const isSent = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0

/** Its fields would be silently ignored. No body and `{}` are accepted. */
export const refuseBody = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<void, ValidationFailed | HttpServerError.RequestError> => {
  if (!isSent(request)) return Effect.void
  const { json } = HttpMethod.hasBody(request.method) ? request : withBoundedJson(request)
  return Effect.flatMap(json, (body) => {
    const keys = Predicate.isReadonlyRecord(body) ? Object.keys(body) : undefined
    if (body === null || keys?.length === 0) return Effect.void
    const fields = boundedFields(keys ?? [])
    return new ValidationFailed({
      message:
        fields.length === 0
          ? "This operation takes no body."
          : `This operation takes no body; it would ignore ${enumerated(fields.map((field) => `\`${field}\``))}.`,
      fields
    })
  })
}

/** Messages of `fetch`-style requests, by the request: a body can be read only once. */
const made = new WeakMap<globalThis.Request, IncomingMessage>()

/** A `fetch`-style request as one of Node's messages; its body is read when the message's is. */
const fromRequest = (request: globalThis.Request): IncomingMessage => {
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
  if (source instanceof globalThis.Request) return fromRequest(source)
  throw new Error("A request comes from Node's HTTP server or is a Request")
}
