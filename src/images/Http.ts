import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect, Option } from "effect"
import { Api } from "../Api.ts"
import { ProviderAccountNotConnected, ResourceNotFound } from "../Errors.ts"
import { Principal } from "../identity/Principal.ts"
import { hasEntityTag } from "../kit/EntityTag.ts"
import { Accounts } from "../provider/Accounts.ts"
import { contentTypes } from "./ImageFormat.ts"
import { Images, nameOf } from "./Images.ts"
import { declaredBytes, readUpload } from "./Upload.ts"

/** Serves `ProductImagesApi` on the bytes that arrive. */
export const productImagesHttp = HttpApiBuilder.group(Api, "productImages", (handlers) =>
  Effect.gen(function* () {
    const images = yield* Images
    const accounts = yield* Accounts
    return handlers.handleRaw("upload", ({ request }) =>
      Effect.gen(function* () {
        const principal = yield* Principal
        // The images are those of products on the account; the provider is not asked
        const account = yield* accounts.show(principal)
        if (Option.getOrUndefined(account)?.status !== "connected") {
          return yield* new ProviderAccountNotConnected()
        }
        yield* images.admit(principal, declaredBytes(request))
        const { url } = yield* images.store(yield* readUpload(request), principal)
        return HttpServerResponse.unsafeJson({ url })
      })
    )
  })
)

/** Anybody's bytes on the service's own origin: shown as the image that they are, never run as anything else. */
const imageHeaders = {
  "cache-control": "public, max-age=31536000, immutable",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; sandbox",
  "cross-origin-resource-policy": "cross-origin"
}

/** Serves `PublicImagesApi`. */
export const publicImagesHttp = HttpApiBuilder.group(Api, "publicImages", (handlers) =>
  Effect.map(Images, (images) =>
    handlers.handleRaw("get", ({ path, request }) =>
      Effect.gen(function* () {
        const notFound = new ResourceNotFound({ message: "There is no such image." })
        const name = yield* Effect.mapError(nameOf(path.file), () => notFound)
        const bytes = yield* Effect.flatMap(
          images.find(name),
          Effect.mapError(() => notFound)
        )
        const etag = `"${name.sha256}"`
        const headers = { ...imageHeaders, etag }
        return hasEntityTag(request.headers["if-none-match"], etag)
          ? HttpServerResponse.empty({ status: 304, headers })
          : HttpServerResponse.uint8Array(bytes, { contentType: contentTypes[name.format], headers })
      })
    )
  )
)
