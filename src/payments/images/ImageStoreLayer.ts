import type { SqlClient } from "@effect/sql"
import { Effect, Layer, Option, Stream } from "effect"
import { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { BoundedSemaphore } from "../../platform/kit/Concurrency.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { type ImageName, ImageStore } from "./ImageStore.ts"
import { makeImagesRepo } from "./ImagesRepo.ts"
import type { S3ImageStoreOptions } from "./S3ImageStore.ts"

/** Bytes of an image in memory at once, per reader and stage; PostgreSQL sends each byte as two hex digits. */
const sliceBytes = 128 * 1024

/** Concurrent statements per process: images must not occupy the connections that payments need. */
const concurrentReads = 2

/** Keeps images in the service's own database, so that small installations need no other store. */
const databaseLayer: Layer.Layer<ImageStore, never, SqlClient.SqlClient> = Layer.effect(
  ImageStore,
  Effect.map(makeImagesRepo, (repo) => {
    const reads = new BoundedSemaphore(concurrentReads)
    const size = (name: ImageName) => repo.size(name).pipe(reads.turn, orUnavailable)
    const slice = (name: ImageName, from: number) =>
      repo.slice(name, from, sliceBytes).pipe(
        reads.turn,
        Effect.filterOrFail(
          ({ length }) => length > 0,
          () => new ServiceUnavailable({ cause: "The image was removed while it was read" })
        ),
        orUnavailable
      )

    return {
      transactional: true,
      remove: (name) => orUnavailable(repo.remove(name)),
      // Bytes that are already stored need not be sent
      put: (name, bytes) =>
        orUnavailable(
          Effect.if(repo.lock(name), { onTrue: () => Effect.void, onFalse: () => repo.insert(name, bytes) })
        ),
      size,
      open: (name) =>
        Effect.map(
          size(name),
          Option.map((size) => ({
            size,
            bytes: Stream.unfoldEffect(0, (from) =>
              from >= size
                ? Effect.succeedNone
                : Effect.map(slice(name, from), (bytes) => Option.some([bytes, from + bytes.length] as const))
            )
          }))
        )
    }
  })
)

const bucketLayer = (options: S3ImageStoreOptions) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => import("./S3ImageStore.ts")),
      ({ s3ImageStoreLayer }) => s3ImageStoreLayer(options)
    )
  )

export const imageStoreLayer = (
  bucket: S3ImageStoreOptions | undefined
): Layer.Layer<ImageStore, never, SqlClient.SqlClient> => (bucket === undefined ? databaseLayer : bucketLayer(bucket))
