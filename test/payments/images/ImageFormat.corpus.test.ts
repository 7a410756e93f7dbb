import { expect, it } from "@effect/vitest"
import { Effect, Option, Random } from "effect"
import { readImageHeader } from "../../../src/payments/images/ImageFormat.ts"
import { casesOf } from "../../harness/Corpus.ts"
import { animatedWebp, craftedAvif, jpeg, lossyWebp, png, progressiveJpeg, transparentWebp, webp } from "./Pictures.ts"

const small = { width: 3, height: 2 }

const pictures = [
  [png({ width: 4 }), { format: "png", width: 4, height: 4 }],
  [jpeg, { format: "jpg", ...small }],
  [progressiveJpeg, { format: "jpg", ...small }],
  [webp, { format: "webp", width: 1, height: 1 }],
  [lossyWebp, { format: "webp", ...small }],
  [transparentWebp, { format: "webp", ...small }],
  [animatedWebp, { format: "webp", ...small }]
] as const

it("a whole image says its format and size, whatever comes behind it", () => {
  for (const [bytes, header] of pictures) {
    expect(readImageHeader(bytes)).toEqual(Option.some(header))
    // Not at the beginning of its memory, as bytes of a form are
    const among = new Uint8Array(bytes.length + 110)
    among.set(bytes, 10)
    expect(readImageHeader(among.subarray(10))).toEqual(Option.some(header))
  }
})

it("a part of an image is none, wherever it was cut", () => {
  for (const [bytes, { format }] of pictures) {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(readImageHeader(bytes.subarray(0, length)), `${format} ${length}`).toEqual(Option.none())
    }
  }
})

it("an image without pixels is none", () => {
  const drop = (bytes: Uint8Array, from: number, to: number) =>
    new Uint8Array(Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]))
  const gray = Buffer.from(png())
  expect(readImageHeader(drop(gray, gray.indexOf("IDAT") - 4, gray.indexOf("IEND") - 4))).toEqual(Option.none())
  const scan = Buffer.from(jpeg).indexOf(Uint8Array.of(0xff, 0xda))
  expect(readImageHeader(drop(jpeg, scan, jpeg.length - 2))).toEqual(Option.none())
  for (const bytes of [lossyWebp, webp]) {
    expect(readImageHeader(bytes.map((byte, index) => (index >= 12 && index < 16 ? 0x20 : byte)))).toEqual(
      Option.none()
    )
  }
})

it.effect("no bytes make it throw", () =>
  Effect.gen(function* () {
    const crafted = craftedAvif()
    expect(readImageHeader(crafted)).toEqual(Option.none())
    const originals = [...pictures.map(([bytes]) => bytes), crafted.subarray(0, 600)]
    for (let round = 0; round < casesOf(10_000); round += 1) {
      const bytes = Uint8Array.from(originals[round % originals.length] ?? [])
      const changes = yield* Random.nextIntBetween(1, 5)
      for (let change = 0; change < changes; change += 1) {
        // The heads have what a size, a length or a count is read from
        const within = Math.min(bytes.length, (yield* Random.nextBoolean) ? 64 : bytes.length)
        bytes[yield* Random.nextIntBetween(0, within)] = yield* Random.nextIntBetween(0, 256)
      }
      expect(() => readImageHeader(bytes), Buffer.from(bytes).toString("hex")).not.toThrow()
    }
  }).pipe(Effect.withRandom(Random.make("image headers")))
)

it("what a scan passes over is read once", () => {
  const bytes = new Uint8Array(64 * 1024).map((_, index) => (index % 2 === 0 ? 0xff : 0))
  bytes.set(jpeg.subarray(0, -2))
  let reads = 0
  const counting = new Proxy(bytes, {
    get: (target, name) => {
      if (typeof name === "string" && /^\d/.test(name)) reads += 1
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === "function" ? value.bind(target) : value
    }
  })
  expect(readImageHeader(counting)).toEqual(Option.none())
  // At each byte, that one and the next
  expect(reads).toBeGreaterThan(bytes.length)
  expect(reads).toBeLessThan(2.1 * bytes.length)
})
