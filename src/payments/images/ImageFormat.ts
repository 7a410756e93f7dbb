import { Option } from "effect"
import { imageDimensionsFromData } from "image-dimensions"
import { isWholeJpeg, isWholePng, isWholeWebp } from "./ImageStructure.ts"

/** The formats of product images (contract 4.10), by the extension in their URLs. */
export type ImageFormat = "jpg" | "png" | "webp"

export const contentTypes: Readonly<Record<ImageFormat, string>> = {
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp"
}

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

const dimensionsOf = Option.liftThrowable(imageDimensionsFromData)

/** None if it is no whole JPEG, PNG or WebP. Never throws, and reads each byte a few times at most. */
export const readImageHeader = (bytes: Uint8Array): Option.Option<ImageHeader> =>
  Option.gen(function* () {
    // First, so that the library never reads a format that is not accepted
    const format = yield* formatOf(bytes)
    const { height, width } = yield* Option.flatMapNullable(dimensionsOf(bytes), (dimensions) => dimensions)
    return yield* width < 1 || height < 1 ? Option.none() : Option.some({ format, width, height })
  })
