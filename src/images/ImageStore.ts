import { Context, type Effect, type Option } from "effect"
import type { ServiceUnavailable } from "../Errors.ts"
import type { ImageFormat } from "./ImageFormat.ts"

/** Which image: the hash of its bytes, and their format. */
export interface ImageName {
  /** SHA-256, 64 lowercase hex digits. */
  readonly sha256: string
  readonly format: ImageFormat
}

/** Keeps product images, by the hash of their bytes, until an operator removes them. Replace this layer to keep them elsewhere. */
export class ImageStore extends Context.Tag("connected-payments/images/ImageStore")<
  ImageStore,
  {
    /** Keeps an image once: one that is there already is left as it is. */
    readonly put: (name: ImageName, bytes: Uint8Array) => Effect.Effect<void, ServiceUnavailable>
    /** The bytes, exactly as they were put; none where no such image was. */
    readonly get: (name: ImageName) => Effect.Effect<Option.Option<Uint8Array>, ServiceUnavailable>
    /** Removes an image, for good. Answers whether there was one. */
    readonly remove: (name: ImageName) => Effect.Effect<boolean, ServiceUnavailable>
    /** Whether `put` and `remove` are part of a transaction of the service's database that they are run in. */
    readonly transactional: boolean
  }
>() {}
