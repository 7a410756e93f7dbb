import { createHash } from "node:crypto"
import { Context, Effect, Layer, Option } from "effect"
import { type ServiceUnavailable, UnsupportedMediaType } from "../Errors.ts"
import { readImageHeader } from "./ImageFormat.ts"
import { type ImageName, ImageStore } from "./ImageStore.ts"

/** Where images are served, below the service's public URL. */
export const imagesPath = "/product-images"

/** The file name of an image, in its URL and on record. */
export const fileOf = ({ format, sha256 }: ImageName): string => `${sha256}.${format}`

/** The image that a file name stands for; none where it stands for no image at all. */
export const nameOf = (file: string): Option.Option<ImageName> => {
  const [, sha256, extension] = /^([0-9a-f]{64})\.(\w+)$/.exec(file) ?? []
  return sha256 !== undefined && (extension === "jpg" || extension === "png" || extension === "webp")
    ? Option.some({ sha256, format: extension })
    : Option.none()
}

/** An image that is kept, and where everybody can see it. */
export interface StoredImage {
  readonly name: ImageName
  readonly url: string
}

/** Product images, hosted by the service: no purpose of the provider's own files fits them (contract, Write operations). */
export class Images extends Context.Tag("connected-payments/images/Images")<
  Images,
  {
    /**
     * Keeps an image under the hash of its bytes; the same bytes are kept once. Refuses bytes that are no JPEG, PNG or
     * WebP, whatever they were called.
     */
    readonly store: (bytes: Uint8Array) => Effect.Effect<StoredImage, UnsupportedMediaType | ServiceUnavailable>
    /** How many bytes an image has; none if there is no such image. */
    readonly size: ImageStore["Type"]["size"]
    /** An image to be read while the scope is open; none if there is no such image. */
    readonly open: ImageStore["Type"]["open"]
  }
>() {
  static readonly layer = (options: {
    /** Where everybody reaches the service, without a trailing slash. */
    readonly publicUrl: string
  }): Layer.Layer<Images, never, ImageStore> =>
    Layer.effect(
      Images,
      Effect.map(ImageStore, (images) => ({
        store: Effect.fn("Images.store")(function* (bytes: Uint8Array) {
          const header = readImageHeader(bytes)
          if (Option.isNone(header)) {
            return yield* new UnsupportedMediaType({ message: "The image must be a JPEG, PNG or WebP." })
          }
          const name = { sha256: createHash("sha256").update(bytes).digest("hex"), format: header.value.format }
          yield* images.put(name, bytes)
          return { name, url: `${options.publicUrl}${imagesPath}/${fileOf(name)}` }
        }),
        size: Effect.fn("Images.size")(images.size),
        open: Effect.fn("Images.open")(images.open)
      }))
    )
}
