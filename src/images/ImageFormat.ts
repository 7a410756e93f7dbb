import { Option } from "effect"
import { imageDimensionsFromData } from "image-dimensions"
import { isWholeJpeg, isWholePng, isWholeWebp } from "./ImageStructure.ts"

/** What a product image may be (contract 4.10): the name of each is the extension in its URL. */
export type ImageFormat = "jpg" | "png" | "webp"

/** The content type of each format. */
export const contentTypes: Readonly<Record<ImageFormat, string>> = {
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp"
}

/** What an image says of itself in its first bytes. */
export interface ImageHeader {
  readonly format: ImageFormat
  readonly width: number
  readonly height: number
}

const formatOf = (bytes: Uint8Array): Option.Option<ImageFormat> => {
  if (isWholePng(bytes)) return Option.some("png")
  if (isWholeJpeg(bytes)) return Option.some("jpg")
  return isWholeWebp(bytes) ? Option.some("webp") : Option.none()
}

/** The library throws at some files that it can't read: none of them is an image either. */
const dimensionsOf = Option.liftThrowable(imageDimensionsFromData)

/**
 * The format and size that the bytes themselves say, whatever the sender called them; none if they are no JPEG, PNG or
 * WebP with a width and a height, or only a part of one. Never throws, and looks at each byte a few times at most.
 */
export const readImageHeader = (bytes: Uint8Array): Option.Option<ImageHeader> =>
  Option.gen(function* () {
    // First: other formats, which nobody may send, are no business of the library's
    const format = yield* formatOf(bytes)
    const { height, width } = yield* Option.flatMapNullable(dimensionsOf(bytes), (dimensions) => dimensions)
    return yield* width < 1 || height < 1 ? Option.none() : Option.some({ format, width, height })
  })
