import { SqlClient } from "@effect/sql"
import { Effect, Layer, Option, Stream } from "effect"
import { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { BoundedSemaphore } from "../../platform/kit/BoundedSemaphore.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { type ImageName, ImageStore } from "./ImageStore.ts"

/** Bytes of an image in memory at once, per reader and stage; PostgreSQL sends each byte as two hex digits. */
const sliceBytes = 128 * 1024

/** Concurrent statements per process: images must not occupy the connections that payments need. */
const concurrentReads = 2

/** Keeps images in the service's own database, so that small installations need no other store. */
export const postgresImageStoreLayer: Layer.Layer<ImageStore, never, SqlClient.SqlClient> = Layer.effect(
  ImageStore,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const reads = new BoundedSemaphore(concurrentReads)

    const size = ({ format, sha256 }: ImageName) =>
      sql<{ size: number }>`
        SELECT octet_length(bytes) AS size FROM payments.product_images
        WHERE sha256 = ${Buffer.from(sha256, "hex")} AND format = ${format}`.pipe(
        reads.turn,
        Effect.map(([row]) => Option.map(Option.fromNullable(row), ({ size }) => size)),
        orUnavailable
      )

    /** The column is stored uncompressed, so that a slice can be read without the rest. */
    const slice = ({ format, sha256 }: ImageName, from: number) =>
      sql<{ slice: Buffer }>`
        SELECT substring(bytes FROM ${from + 1}::int FOR ${sliceBytes}::int) AS slice FROM payments.product_images
        WHERE sha256 = ${Buffer.from(sha256, "hex")} AND format = ${format}`.pipe(
        reads.turn,
        Effect.flatMap(([row]) =>
          row === undefined || row.slice.length === 0
            ? new ServiceUnavailable({ cause: "The image was removed while it was read" })
            : Effect.succeed<Uint8Array>(row.slice)
        ),
        orUnavailable
      )

    return {
      transactional: true,
      remove: ({ format, sha256 }) =>
        sql`
          DELETE FROM payments.product_images
          WHERE sha256 = ${Buffer.from(sha256, "hex")} AND format = ${format} RETURNING 1`.pipe(
          Effect.map((rows) => rows.length > 0),
          orUnavailable
        ),
      put: ({ format, sha256 }, bytes) =>
        Effect.gen(function* () {
          const hash = Buffer.from(sha256, "hex")
          // The lock makes a removal wait until the upload is recorded, so that it removes the record, too
          const known = yield* sql`SELECT 1 FROM payments.product_images WHERE sha256 = ${hash} FOR KEY SHARE`
          // Bytes that are already stored need not be sent
          if (known.length === 0) {
            yield* sql`
              INSERT INTO payments.product_images (sha256, format, bytes) VALUES (${hash}, ${format}, ${Buffer.from(bytes)})
              ON CONFLICT (sha256) DO NOTHING`
          }
        }).pipe(orUnavailable),
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
