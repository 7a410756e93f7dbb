import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { toReadable } from "@effect/platform-node/NodeStream"
import { Effect, Option, Stream } from "effect"
import { Principal } from "../../identity/Principal.ts"
import {
  ProviderAccountNotConnected,
  RateLimitExceeded,
  ResourceNotFound,
  ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { BaseApi } from "../../platform/kit/BaseApi.ts"
import { makeFairSemaphore } from "../../platform/kit/Concurrency.ts"
import { hasEntityTag } from "../../platform/kit/Request.ts"
import type { TrustedProxies } from "../../platform/settings/Forms.ts"
import { clientNetwork } from "../../server/Connections.ts"
import { Accounts } from "../Accounts.ts"
import { ProductImagesApi, PublicImagesApi } from "./Api.ts"
import { contentTypes } from "./ImageFormat.ts"
import type { ImageContent } from "./ImageStore.ts"
import { Images, nameOf } from "./Images.ts"
import { declaredBytes, readUpload } from "./Upload.ts"

const patience = "10 seconds"

/** Concurrent uploads per process: each is held in memory as a whole, and one in a form several times. */
const uploadConcurrency = 8

/** A semaphore for this many concurrent transfers, of which one owner holds at most a quarter. */
const makeTransfers = (concurrency: number) =>
  makeFairSemaphore({
    concurrency,
    share: Math.max(1, Math.floor(concurrency / 4)),
    patience,
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
  "content-security-policy": "default-src 'none'; sandbox",
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
