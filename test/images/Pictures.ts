import { crc32, deflateSync } from "node:zlib"

/** Small images with real pixels, each as its format says, for uploads. */

const chunk = (type: string, data: Buffer): Buffer => {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, checksum])
}

/** A gray square. Another shade is another image, other bytes behind it make it as large as is wanted. */
export const png = (options: { readonly shade?: number; readonly width?: number; readonly bytes?: number } = {}) => {
  const { bytes = 0, shade = 128, width = 2 } = options
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(width, 4)
  header.writeUInt8(8, 8)
  const rows = Buffer.alloc((width + 1) * width, shade)
  for (let row = 0; row < width; row += 1) rows[row * (width + 1)] = 0
  const image = Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0))
  ])
  return new Uint8Array(Buffer.concat([image, Buffer.alloc(Math.max(0, bytes - image.length))]))
}

/** The head of a baseline JPEG of 3 by 2 pixels: what a decoder reads the size from. */
export const jpeg = new Uint8Array(
  Buffer.from(
    "ffd8ffe000104a46494600010100000100010000ffc0001108000200030301220002110103110100ffd9".replace(/\s/g, ""),
    "hex"
  )
)

/** A lossless WebP of 1 by 1 pixel. */
export const webp = new Uint8Array(Buffer.from("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==", "base64"))
