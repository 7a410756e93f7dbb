import type { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import type { ImageStore } from "./ImageStore.ts"
import { postgresImageStoreLayer } from "./PostgresImageStore.ts"
import type { S3ImageStoreOptions } from "./S3ImageStore.ts"

/** Images in a bucket; what speaks to one is loaded where there is one. */
const bucketLayer = (options: S3ImageStoreOptions) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => import("./S3ImageStore.ts")),
      ({ s3ImageStoreLayer }) => s3ImageStoreLayer(options)
    )
  )

/** Where images are kept: in this bucket, or else in the database. */
export const imageStoreLayer = (
  bucket: S3ImageStoreOptions | undefined
): Layer.Layer<ImageStore, never, SqlClient.SqlClient> =>
  bucket === undefined ? postgresImageStoreLayer : bucketLayer(bucket)
