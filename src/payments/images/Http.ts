import { HttpApiBuilder, type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { toReadable } from "@effect/platform-node/NodeStream"
import { Effect, Option, Stream } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { fieldName, refusal } from "../../platform/bounds/Refusals.ts"
import {
  PayloadTooLarge,
  ProviderAccountNotConnected,
  RateLimitExceeded,
  ResourceNotFound,
  ServiceUnavailable,
  type UnsupportedMediaType,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { BaseApi } from "../../platform/kit/BaseApi.ts"
import { makeFairSemaphore } from "../../platform/kit/Concurrency.ts"
import { uploadPolicy } from "../../platform/kit/Page.ts"
import { hasEntityTag } from "../../platform/kit/Request.ts"
import type { TrustedProxies } from "../../platform/settings/Forms.ts"
import { readBytes, type UnreadableRequest } from "../../server/Body.ts"
import { clientNetwork } from "../../server/Connections.ts"
import { Accounts } from "../Accounts.ts"
import { ProductImagesApi, PublicImagesApi } from "./Api.ts"
import { contentTypes } from "./ImageFormat.ts"
import type { ImageContent } from "./ImageStore.ts"
import { Images, nameOf } from "./Images.ts"

/** The image of an upload: the body itself, or the one part of a form. */

const maxImageBytes = 4 * 1024 * 1024

const maxFormOverhead = 16 * 1024

/** How many times a form may contain its boundary; one image needs two. */
const maxBoundaries = 20

const filePart = "file"

const partReason = (name: string): string =>
  name === filePart ? "must be one part of the form, with the image as its file" : "is not a known part"

const unreadable = () =>
  new ValidationFailed({ fields: [filePart], message: "The form could not be read; send the image as its part file." })

/** The boundary of a form, if it needs no escaping in quotes; undefined otherwise, or if there is none. */
const boundaryOf = (contentType: string): string | undefined => {
  const [, quoted, plain] =
    /;\s*boundary=(?:"([!#-[\]-~ ]{1,70})"|([!#-:<-[\]-~]{1,70}))\s*(?:;|$)/i.exec(contentType) ?? []
  return quoted ?? plain
}

/** A parser creates an object for each part, and 4 MiB have room for 65,000. */
const isSmall = (body: Buffer, boundary: string): boolean => {
  const delimiter = Buffer.from(`--${boundary}`, "latin1")
  let found = 0
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + delimiter.length)) {
    found += 1
    const start = at + delimiter.length
    const head = body.subarray(start, start + maxFormOverhead)
    const ends = head.toString("latin1", 0, 2) === "--" || head.includes("\r\n\r\n") || head.length < maxFormOverhead
    if (found > maxBoundaries || !ends) return false
  }
  return true
}

/** The image of a form; it must be the form's only part. */
const fromForm = (body: Buffer, contentType: string): Effect.Effect<Uint8Array, ValidationFailed | PayloadTooLarge> =>
  Effect.gen(function* () {
    const boundary = boundaryOf(contentType)
    if (boundary === undefined || !isSmall(body, boundary)) {
      return yield* unreadable()
    }
    const form = yield* Effect.tryPromise({
      // With the counted boundary, ignoring all other parameters of the sender's type
      try: () =>
        new Response(new Uint8Array(body), {
          headers: { "content-type": `multipart/form-data; boundary="${boundary}"` }
        }).formData(),
      catch: unreadable
    })
    const file = form.get(filePart)
    const refused = [...new Set(form.keys())].filter((name) => name !== filePart)
    if (!(file instanceof File) || form.getAll(filePart).length > 1) {
      refused.push(filePart)
    }
    if (!(file instanceof File) || refused.length > 0) {
      return yield* new ValidationFailed(refusal(new Map(refused.map((name) => [fieldName([name]), partReason(name)]))))
    }
    if (file.size > maxImageBytes) {
      return yield* new PayloadTooLarge({ message: `The image is larger than ${maxImageBytes} bytes.` })
    }
    return new Uint8Array(yield* Effect.promise(() => file.arrayBuffer()))
  })

/** The declared size of an upload; the maximum if it is missing or larger. */
const declaredBytes = ({ headers }: HttpServerRequest.HttpServerRequest): number => {
  const declared = headers["content-length"] ?? ""
  return /^\d{1,15}$/.test(declared) ? Math.min(Number(declared), maxImageBytes) : maxImageBytes
}

/**
 * Reads an upload, bounded as it streams in. The declared type of the image is ignored: its bytes decide.
 *
 * Errors: `payload_too_large` over 4 MiB; `validation_failed` with `file`, or with the unexpected parts of a
 * form.
 */
const readUpload = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<Uint8Array, UnreadableRequest | UnsupportedMediaType> => {
  const contentType = request.headers["content-type"] ?? ""
  const isForm = /^multipart\/form-data\s*;/i.test(contentType)
  return readBytes(request, isForm ? maxImageBytes + maxFormOverhead : maxImageBytes).pipe(
    // If the sender is gone there is nobody to answer: the edge ends the request
    Effect.catchTag("RequestError", Effect.die),
    Effect.flatMap((body) => (isForm ? fromForm(body, contentType) : Effect.succeed(body)))
  )
}

/** Concurrent uploads per process: each is held in memory as a whole, and one in a form several times. */
const uploadConcurrency = 8

/** A semaphore for this many concurrent transfers, of which one owner holds at most a quarter. */
const makeTransfers = (concurrency: number) =>
  makeFairSemaphore({
    concurrency,
    share: Math.max(1, Math.floor(concurrency / 4)),
    timeout: "10 seconds",
    onShareTaken: () =>
      new RateLimitExceeded({ message: "Too many images at once; wait as long as Retry-After says." }),
    onAllTaken: () => new ServiceUnavailable({ cause: "Too many images at once" })
  })

export const productImagesHttp = HttpApiBuilder.group(BaseApi.add(ProductImagesApi), "productImages", (handlers) =>
  Effect.gen(function* () {
    const images = yield* Images
    const accounts = yield* Accounts
    const takePermit = yield* makeTransfers(uploadConcurrency)
    return handlers.handleRaw("upload", ({ request }) =>
      Effect.gen(function* () {
        const principal = yield* Principal
        // The images belong to products on the account, so it must be connected; this does not call the provider
        const account = yield* accounts.show(principal)
        if (Option.getOrUndefined(account)?.status !== "connected") {
          return yield* new ProviderAccountNotConnected()
        }
        yield* images.admit(principal, declaredBytes(request))
        yield* takePermit(principal.organizationId)
        const { url } = yield* images.store(yield* readUpload(request), principal)
        return HttpServerResponse.unsafeJson({ url })
      })
    )
  })
)

/** Headers for uploaded bytes on the service's own origin: shown as an image, never run as anything else. */
const imageHeaders = {
  "cache-control": "public, max-age=31536000, immutable",
  "x-content-type-options": "nosniff",
  "content-security-policy": uploadPolicy,
  "cross-origin-resource-policy": "cross-origin"
}

export interface ImageBounds {
  readonly imageConcurrency: number
}

/**
 * An image's bytes, or a failure that closes the connection: if the body were shorter than announced, the client would
 * take the next response for the rest of it.
 */
const exactly = ({ bytes, size }: ImageContent) =>
  Stream.suspend(() => {
    let left = size
    const counted = Stream.tap(bytes, (part) =>
      Effect.sync(() => {
        left -= part.length
      })
    )
    return Stream.concat(
      counted,
      Stream.suspend(() => (left === 0 ? Stream.empty : Stream.dieMessage("The image is not as long as it should be")))
    )
  })

/** Serves `PublicImagesApi`: an image is sent in pieces, as fast as the client reads it. */
export const publicImagesHttp = (options: ImageBounds & { readonly trustedProxies: TrustedProxies }) =>
  HttpApiBuilder.group(BaseApi.add(PublicImagesApi), "publicImages", (handlers) =>
    Effect.gen(function* () {
      const images = yield* Images
      const takePermit = yield* makeTransfers(options.imageConcurrency)
      return handlers.handleRaw("get", ({ path, request }) =>
        Effect.gen(function* () {
          const notFound = new ResourceNotFound({ message: "There is no such image." })
          const name = yield* Effect.mapError(nameOf(path.file), () => notFound)
          const etag = `"${name.sha256}"`
          const headers = { ...imageHeaders, etag }
          const contentType = contentTypes[name.format]
          const isKnown = hasEntityTag(request.headers["if-none-match"], etag)
          if (isKnown || request.method === "HEAD") {
            const size = yield* Effect.flatMap(
              images.size(name),
              Effect.mapError(() => notFound)
            )
            return isKnown
              ? HttpServerResponse.empty({ status: 304, headers })
              : HttpServerResponse.raw(null, { contentType, contentLength: size, headers })
          }
          yield* takePermit(yield* clientNetwork(options.trustedProxies))
          const image = yield* Effect.flatMap(
            images.open(name),
            Effect.mapError(() => notFound)
          )
          const body = yield* toReadable(exactly(image))
          return HttpServerResponse.raw(body, { contentType, contentLength: image.size, headers })
        })
      )
    })
  )
