import { Context, type Effect, type Option, type Scope, type Stream } from "effect"
import type { ServiceUnavailable } from "../errors/Errors.ts"
import type { ImageFormat } from "./ImageFormat.ts"

/** Which image: the hash of its bytes, and their format. */
export interface ImageName {
  /** SHA-256, 64 lowercase hex digits. */
  readonly sha256: string
  readonly format: ImageFormat
}

/** An image that is read. */
export interface ImageContent {
  /** In bytes. */
  readonly size: number
  /** Exactly `size` bytes, as they were put, in pieces that are fetched as they are asked for. To be run once, at most. */
  readonly bytes: Stream.Stream<Uint8Array, ServiceUnavailable>
}

/** Keeps product images, by the hash of their bytes, until an operator removes them. Replace this layer to keep them elsewhere. */
export class ImageStore extends Context.Tag("connected-payments/images/ImageStore")<
  ImageStore,
  {
    /** Keeps an image once: one that is there already is left as it is. */
    readonly put: (name: ImageName, bytes: Uint8Array) => Effect.Effect<void, ServiceUnavailable>
    /** How many bytes an image has, without reading them; none if no such image was put. */
    readonly size: (name: ImageName) => Effect.Effect<Option.Option<number>, ServiceUnavailable>
    /** An image to be read, as long as the scope is open; none if no such image was put. */
    readonly open: (name: ImageName) => Effect.Effect<Option.Option<ImageContent>, ServiceUnavailable, Scope.Scope>
    /** Removes an image, for good. Answers whether there was one. */
    readonly remove: (name: ImageName) => Effect.Effect<boolean, ServiceUnavailable>
    /** Whether `put` and `remove` are part of a transaction of the service's database that they are run in. */
    readonly transactional: boolean
  }
>() {}
