import type { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import type { ImageStore } from "./ImageStore.ts"
import { postgresImageStoreLayer } from "./PostgresImageStore.ts"
import type { S3ImageStoreOptions } from "./S3ImageStore.ts"

/** Images in a bucket, whose client is loaded on demand. */
const bucketLayer = (options: S3ImageStoreOptions) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => import("./S3ImageStore.ts")),
      ({ s3ImageStoreLayer }) => s3ImageStoreLayer(options)
    )
  )

/** The image store: this bucket, or else the database. */
export const imageStoreLayer = (
  bucket: S3ImageStoreOptions | undefined
): Layer.Layer<ImageStore, never, SqlClient.SqlClient> =>
  bucket === undefined ? postgresImageStoreLayer : bucketLayer(bucket)
