import { Option } from "effect"
import { imageDimensionsFromData } from "image-dimensions"

/**
 * Checks that a file is structurally a whole image: every part that it announces is present, and at least one has
 * pixels. Nothing is decoded, so the cost is linear: each byte is read at most once.
 */

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The four bytes that name a chunk, as text; fewer at the end of the bytes. */
const nameAt = (bytes: Uint8Array, offset: number): string => String.fromCharCode(...bytes.subarray(offset, offset + 4))

const startsWith = (bytes: Uint8Array, prefix: ReadonlyArray<number>, offset = 0): boolean =>
  prefix.every((byte, index) => bytes[offset + index] === byte)

const pngSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

/** The length of a PNG's header, and of a chunk without its data: length, name and checksum. */
const [pngHeader, pngFrame] = [13, 12]

/** Whether a PNG has its header, image data and end; anything after the end is ignored. */
const isWholePng = (bytes: Uint8Array): boolean => {
  if (!startsWith(bytes, pngSignature)) return false
  const view = viewOf(bytes)
  let hasPixels = false
  for (let offset = pngSignature.length; offset + pngFrame <= bytes.length; ) {
    const length = view.getUint32(offset)
    const name = nameAt(bytes, offset + 4)
    const isFirst = offset === pngSignature.length
    if (isFirst !== (name === "IHDR") || (isFirst && length !== pngHeader)) return false
    offset += pngFrame + length
    if (name === "IEND") return hasPixels && offset <= bytes.length
    if (name === "IDAT" && length > 0) hasPixels = true
  }
  return false
}

/** JPEG's markers, by the byte after 0xFF. */
const [startOfImage, endOfImage, startOfScan] = [0xd8, 0xd9, 0xda]

/** Whether a marker begins a frame: three markers in this range are tables and an extension. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** Fill bytes, 0xFF as scan data, restarts within a scan, and a marker for encoders' own use. */
const isPassedOver = (marker: number): boolean =>
  marker === 0xff || marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd7)

/** The position of the next marker that begins a segment; like decoders, skips everything before it. */
const nextMarker = (bytes: Uint8Array, from: number): number => {
  let offset = from
  // A plain loop: a function call for each of millions of bytes would take most of a second
  while (offset + 1 < bytes.length && (bytes[offset] !== 0xff || isPassedOver(bytes[offset + 1] ?? 0))) offset += 1
  return offset
}

/** Whether a JPEG has a frame, at least one scan and its end. */
const isWholeJpeg = (bytes: Uint8Array): boolean => {
  if (!startsWith(bytes, [0xff, startOfImage, 0xff])) return false
  const view = viewOf(bytes)
  let hasFrame = false
  let hasScan = false
  for (let offset = nextMarker(bytes, 2); offset + 1 < bytes.length; ) {
    const marker = view.getUint8(offset + 1)
    if (marker === endOfImage) return hasScan
    const length = offset + 4 > bytes.length ? 0 : view.getUint16(offset + 2)
    if (length < 2 || marker === startOfImage || (marker === startOfScan && !hasFrame)) return false
    if (isFrame(marker)) hasFrame = true
    if (marker === startOfScan) hasScan = true
    offset = nextMarker(bytes, offset + 2 + length)
  }
  return false
}

/** Whether a WebP chunk has pixels: its data begins as its kind requires. */
const hasWebpPixels = (bytes: Uint8Array, offset: number, length: number): boolean => {
  switch (nameAt(bytes, offset)) {
    case "VP8 ":
      return length >= 10 && startsWith(bytes, [0x9d, 0x01, 0x2a], offset + 11)
    case "VP8L":
      return length >= 5 && bytes[offset + 8] === 0x2f
    // A frame of an animation, with a chunk of its own
    case "ANMF":
      return length >= 24
    default:
      return false
  }
}

/** Whether a WebP has its full length and all its chunks, at least one of them with pixels. */
const isWholeWebp = (bytes: Uint8Array): boolean => {
  if (bytes.length < 20 || nameAt(bytes, 0) !== "RIFF" || nameAt(bytes, 8) !== "WEBP") return false
  const view = viewOf(bytes)
  const end = 8 + view.getUint32(4, true)
  if (end > bytes.length) return false
  let hasPixels = false
  for (let offset = 12; offset + 8 <= end; ) {
    const length = view.getUint32(offset + 4, true)
    if (offset + 8 + length > end) return false
    hasPixels ||= hasWebpPixels(bytes, offset, length)
    // Chunks begin at even offsets
    offset += 8 + length + (length % 2)
  }
  return hasPixels
}

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
