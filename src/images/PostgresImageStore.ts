import { SqlClient } from "@effect/sql"
import { Effect, Layer, Option } from "effect"
import { orUnavailable } from "../storage/Database.ts"
import { ImageStore } from "./ImageStore.ts"

/** Keeps images in the service's own database: nothing more to run, for as long as they are few. */
export const postgresImageStoreLayer: Layer.Layer<ImageStore, never, SqlClient.SqlClient> = Layer.effect(
  ImageStore,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    transactional: true,
    put: ({ format, sha256 }, bytes) =>
      Effect.gen(function* () {
        const hash = Buffer.from(sha256, "hex")
        // A removal waits until what is recorded of the upload is there to be removed with it
        const known = yield* sql`SELECT 1 FROM payments.product_images WHERE sha256 = ${hash} FOR KEY SHARE`
        // Bytes that are there already need not be sent
        if (known.length === 0) {
          yield* sql`
            INSERT INTO payments.product_images (sha256, format, bytes) VALUES (${hash}, ${format}, ${Buffer.from(bytes)})
            ON CONFLICT (sha256) DO NOTHING`
        }
      }).pipe(orUnavailable),
    get: ({ format, sha256 }) =>
      sql<{ bytes: Buffer }>`
        SELECT bytes FROM payments.product_images
        WHERE sha256 = ${Buffer.from(sha256, "hex")} AND format = ${format}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromNullable(row), ({ bytes }): Uint8Array => bytes)),
        orUnavailable
      ),
    remove: ({ format, sha256 }) =>
      sql`
        DELETE FROM payments.product_images
        WHERE sha256 = ${Buffer.from(sha256, "hex")} AND format = ${format} RETURNING 1`.pipe(
        Effect.map((rows) => rows.length > 0),
        orUnavailable
      )
  }))
)
