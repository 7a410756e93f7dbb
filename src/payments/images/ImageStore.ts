import { Context, type Effect, type Option, type Scope, type Stream } from "effect"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import type { ImageFormat } from "./ImageFormat.ts"

export interface ImageName {
  /** SHA-256, 64 lowercase hex digits. */
  readonly sha256: string
  readonly format: ImageFormat
}

export interface ImageContent {
  readonly size: number
  /** Exactly `size` bytes, as they were stored, in pieces that are fetched on demand. Run it at most once. */
  readonly bytes: Stream.Stream<Uint8Array, ServiceUnavailable>
}

/** Keeps images by the hash of their bytes. Replace its layer to store them elsewhere. */
export class ImageStore extends Context.Tag("connected-payments/images/ImageStore")<
  ImageStore,
  {
    /** Stores an image; does nothing if it is stored already. */
    readonly put: (name: ImageName, bytes: Uint8Array) => Effect.Effect<void, ServiceUnavailable>
    readonly size: (name: ImageName) => Effect.Effect<Option.Option<number>, ServiceUnavailable>
    /** Opens an image for as long as the scope is open; none if there is no such image. */
    readonly open: (name: ImageName) => Effect.Effect<Option.Option<ImageContent>, ServiceUnavailable, Scope.Scope>
    /** Removes an image for good. Returns whether there was one. */
    readonly remove: (name: ImageName) => Effect.Effect<boolean, ServiceUnavailable>
    /** Whether `put` and `remove` take part in a transaction of the service's database. */
    readonly transactional: boolean
  }
>() {}
