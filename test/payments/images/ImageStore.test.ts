import { createHash } from "node:crypto"
import { Context, Effect, Layer, Option, Redacted, Stream } from "effect"
import { type ImageName, ImageStore } from "../../../src/payments/images/ImageStore.ts"
import { imageStoreLayer } from "../../../src/payments/images/ImageStoreLayer.ts"
import { s3ImageStoreLayer } from "../../../src/payments/images/S3ImageStore.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { expect, layer } from "../../harness/Tests.ts"
import { makeObjectStorage, type ObjectStorage } from "./ObjectStorage.ts"
import { jpeg, png, webp } from "./Pictures.ts"

const nameOf = (bytes: Uint8Array, format: ImageName["format"] = "png"): ImageName => ({
  sha256: createHash("sha256").update(bytes).digest("hex"),
  format
})

const read = (images: ImageStore["Type"], name: ImageName) =>
  Effect.scoped(
    Effect.flatMap(
      images.open(name),
      Effect.transposeMapOption(({ bytes, size }) =>
        Effect.map(Stream.runCollect(bytes), (parts) => ({ size, parts: [...parts], bytes: Buffer.concat([...parts]) }))
      )
    )
  )

const conforms = (name: string, store: Layer.Layer<ImageStore>) =>
  layer(store)(`images in ${name}`, (it) => {
    it.effect("come back byte for byte, in each format", function* () {
      const images = yield* ImageStore
      for (const [bytes, format] of [
        [png(), "png"],
        [jpeg, "jpg"],
        [webp, "webp"],
        [png({ bytes: 4 * 1024 * 1024 }), "png"]
      ] as const) {
        const image = nameOf(bytes, format)
        yield* images.put(image, bytes)
        const found = Option.getOrThrow(yield* read(images, image))
        expect(Buffer.compare(found.bytes, bytes), format).toBe(0)
        expect(found.size, format).toBe(bytes.length)
        expect(yield* images.size(image), format).toEqual(Option.some(bytes.length))
        // No more than a part of a large one is in memory at once
        expect(Math.max(...found.parts.map(({ length }) => length))).toBeLessThanOrEqual(256 * 1024)
      }
    })

    it.effect("are kept once: the same again changes nothing, at once or one after the other", function* () {
      const images = yield* ImageStore
      const bytes = png({ shade: 7 })
      const image = nameOf(bytes)
      yield* Effect.all(
        Array.from({ length: 5 }, () => images.put(image, bytes)),
        { concurrency: "unbounded" }
      )
      yield* images.put(image, bytes)
      expect(Option.getOrThrow(yield* read(images, image)).bytes).toEqual(Buffer.from(bytes))
    })

    it.effect("are gone once they are removed, and may be put again", function* () {
      const images = yield* ImageStore
      const bytes = png({ shade: 9 })
      const image = nameOf(bytes)
      expect(yield* images.remove(image)).toBe(false)
      yield* images.put(image, bytes)
      expect(yield* images.remove(image)).toBe(true)
      expect(yield* images.size(image)).toEqual(Option.none())
      expect(yield* images.remove(image)).toBe(false)
      yield* images.put(image, bytes)
      expect(Option.isSome(yield* images.size(image))).toBe(true)
    })

    it.effect("that were never put are none, nor is an image under another format", function* () {
      const images = yield* ImageStore
      expect(yield* read(images, nameOf(png({ shade: 1 })))).toEqual(Option.none())
      expect(yield* images.size(nameOf(png({ shade: 1 })))).toEqual(Option.none())
      const bytes = png({ shade: 2 })
      yield* images.put(nameOf(bytes), bytes)
      expect(yield* read(images, nameOf(bytes, "webp"))).toEqual(Option.none())
      expect(yield* images.size(nameOf(bytes, "webp"))).toEqual(Option.none())
    })
  })

const databaseOf = Layer.unwrapScoped(
  Effect.map(createMigratedDatabase, ({ url }) => databaseLayer({ url, poolSize: 2 }))
).pipe(Layer.orDie)

conforms("the database", Layer.provide(imageStoreLayer(undefined), databaseOf))

class Storage extends Context.Tag("test/images/Storage")<Storage, ObjectStorage>() {}

const storageLayer = Layer.scoped(Storage, makeObjectStorage)

const bucketOf = ({ credentials, url }: ObjectStorage) =>
  s3ImageStoreLayer({ ...credentials, url, secretAccessKey: Redacted.make(credentials.secretAccessKey) })

conforms("a bucket", Layer.provide(Layer.unwrapEffect(Effect.map(Storage, bucketOf)), storageLayer))

layer(storageLayer)("a bucket of images", (it) => {
  it.effect("holds each under the bucket's own beginning, with its type, and is sent it once", function* () {
    const storage = yield* Storage
    const images = yield* Effect.provide(ImageStore, bucketOf(storage))
    const image = nameOf(webp, "webp")
    yield* images.put(image, webp)
    yield* images.put(image, webp)
    expect([...storage.objects.entries()].map(([key, { contentType }]) => [key, contentType])).toEqual([
      [`shop/product-images/${image.sha256}.webp`, "image/webp"]
    ])
    expect(storage.answers).toEqual(["HEAD 404", "PUT 200", "HEAD 200"])
  })

  it.effect("that refuses the credentials or fails is unavailable, which is not the same as empty", function* () {
    const storage = yield* Storage
    const stranger = s3ImageStoreLayer({
      ...storage.credentials,
      url: storage.url,
      secretAccessKey: Redacted.make("x")
    })
    const refused = yield* Effect.provide(ImageStore, stranger)
    const image = nameOf(jpeg, "jpg")
    expect((yield* Effect.flip(read(refused, image)))._tag).toBe("ServiceUnavailable")
    expect((yield* Effect.flip(refused.put(image, jpeg)))._tag).toBe("ServiceUnavailable")
    const images = yield* Effect.provide(ImageStore, bucketOf(storage))
    storage.fail(500)
    const failures = yield* Effect.all([
      Effect.flip(read(images, image)),
      Effect.flip(images.size(image)),
      Effect.flip(images.put(image, jpeg))
    ])
    storage.fail(undefined)
    expect(failures.map(({ _tag, status }) => [_tag, status])).toEqual([
      ["ServiceUnavailable", 503],
      ["ServiceUnavailable", 503],
      ["ServiceUnavailable", 503]
    ])
    expect(storage.objects.has(`shop/product-images/${image.sha256}.jpg`)).toBe(false)
  })

  it.effect("that does not answer is unavailable within its time", function* () {
    const closed = s3ImageStoreLayer({
      ...(yield* Storage).credentials,
      url: new URL("http://127.0.0.1:9/pictures"),
      secretAccessKey: Redacted.make("x"),
      timeout: "2 seconds"
    })
    const images = yield* Effect.provide(ImageStore, closed)
    expect((yield* Effect.flip(read(images, nameOf(jpeg, "jpg"))))._tag).toBe("ServiceUnavailable")
  })
})
