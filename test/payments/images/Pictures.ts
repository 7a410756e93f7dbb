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

const picture = (base64: string) => new Uint8Array(Buffer.from(base64, "base64"))

export const jpeg = picture(
  "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAACAAMDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAZEAADAQEBAAAAAAAAAAAAAAABAgMAESH/xAAVAQEBAAAAAAAAAAAAAAAAAAAEBf/EABoRAAICAwAAAAAAAAAAAAAAAAABAgMyM3H/2gAMAwEAAhEDEQA/AIlKbwkzzRmM16SoJPgzM1KnXHiATyZ//9k="
)

/** A progressive JPEG of 3 by 2 pixels: its scans have tables between them. */
export const progressiveJpeg = picture(
  "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wgARCAACAAMDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAUAQEAAAAAAAAAAAAAAAAAAAAE/9oADAMBAAIQAxAAAAGQk/8A/8QAFRABAQAAAAAAAAAAAAAAAAAAARH/2gAIAQEAAQUCAn//xAAWEQADAAAAAAAAAAAAAAAAAAAAATH/2gAIAQMBAT8BdP/EABcRAAMBAAAAAAAAAAAAAAAAAAABAjL/2gAIAQIBAT8BjKP/xAAXEAADAQAAAAAAAAAAAAAAAAAAASFB/9oACAEBAAY/AlMP/8QAFxABAAMAAAAAAAAAAAAAAAAAAQARQf/aAAgBAQABPyFDIWmT/9oADAMBAAIAAwAAABD3/8QAFREBAQAAAAAAAAAAAAAAAAAAADH/2gAIAQMBAT8Qs//EABYRAAMAAAAAAAAAAAAAAAAAAAABof/aAAgBAgEBPxCBH//EABcQAQADAAAAAAAAAAAAAAAAAAEAESH/2gAIAQEAAT8Qd1LFCuE//9k="
)

export const webp = picture("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")

export const lossyWebp = picture(
  "UklGRkwAAABXRUJQVlA4IEAAAADwAQCdASoDAAIABUB8JagCdLoAAwkG+4AA/bMTqBkvI4C04Dap35Mp2/P+hlxPWdPr/oP/eWXzaMR8tOVcIAAA"
)

/** A WebP of 3 by 2 pixels whose transparency is a chunk of its own. */
export const transparentWebp = picture(
  "UklGRm4AAABXRUJQVlA4WAoAAAAQAAAAAgAAAQAAQUxQSAcAAAAAZGRkZGRkAFZQOCBAAAAA8AEAnQEqAwACAAVAfCWoAnS6AAMJBvuAAP2zE6gZLyOAtOA2qd+TKdvz/oZcT1nT6/6D/3ll82jEfLTlXCAAAA=="
)

/** A WebP of two frames, each of 3 by 2 pixels. */
export const animatedWebp = picture(
  "UklGRjYBAABXRUJQVlA4WAoAAAACAAAAAgAAAQAAQU5JTQYAAAAAAAAAAABBTk1GuAAAAAAAAAAAAAIAAAEAAGQAAAJWUDggoAAAAFABAJ0BKgMAAgABQCYlqAAEdAAA/bOj+w//aufMPcrO/i2SF0X//n/v/R+lz/DX+64P4m5fkKn/8Nf7Gi/30Wf/4a/2NF/vos//w1/saL/fT//+E7f4xf7f6f/8J2/xi/3Dz//hO3+MX+4ef//Q8/8I6v2j/xf//97Bf/4PP/COr9o/8X//VD//+Vft+Pr/8G///Gkf6r2/H1/+Df9D4ABBTk1GSgAAAAAAAAAAAAIAAAEAAGQAAABWUDggMgAAADQBAJ0BKgMAAgAAACYloAADcAD+8ut///mwP/bz/wR6Af//0uD//pcH//S4P/SkAAAA"
)

const box = (type: string, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const data = Buffer.concat(parts)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(8 + data.length)
  return Buffer.concat([length, Buffer.from(type, "latin1"), data])
}

/** An AVIF that says a million times nothing of its items: what collects all of that runs out of its stack. */
export const craftedAvif = (): Uint8Array => {
  const count = 1_000_000
  const head = Buffer.alloc(8)
  head.writeUInt32BE(count, 4)
  const associations = box("iprp", box("ipma", head, Buffer.alloc(3 * count)))
  return new Uint8Array(
    Buffer.concat([box("ftyp", Buffer.from("avif\0\0\0\0avif", "latin1")), box("meta", Buffer.alloc(4), associations)])
  )
}
