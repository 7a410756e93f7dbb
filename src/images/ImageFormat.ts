import { Option } from "effect"
import { imageDimensionsFromData } from "image-dimensions"

/** What a product image may be (contract, Limits): the name of each is the extension in its URL. */
export type ImageFormat = "jpg" | "png" | "webp"

/** The content type of each format. */
export const contentTypes: Readonly<Record<ImageFormat, string>> = {
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp"
}

const formatOf: Readonly<Record<string, ImageFormat>> = { jpeg: "jpg", png: "png", webp: "webp" }

/** What an image says of itself in its first bytes. */
export interface ImageHeader {
  readonly format: ImageFormat
  readonly width: number
  readonly height: number
}

/**
 * The format and size that the bytes themselves say, whatever the sender called them; none where they are no JPEG, PNG
 * or WebP with a width and a height.
 */
export const readImageHeader = (bytes: Uint8Array): Option.Option<ImageHeader> => {
  const header = imageDimensionsFromData(bytes)
  const format = header === undefined ? undefined : formatOf[header.type]
  return header === undefined || format === undefined || header.width < 1 || header.height < 1
    ? Option.none()
    : Option.some({ format, width: header.width, height: header.height })
}
