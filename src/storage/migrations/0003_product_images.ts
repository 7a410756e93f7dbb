import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * Product images, by the hash of their bytes: they belong to no tenant, since the same bytes are the same image for
 * all.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE payments.product_images (
      sha256 bytea PRIMARY KEY CHECK (length(sha256) = 32),
      format text NOT NULL CHECK (format IN ('jpg', 'png', 'webp')),
      bytes bytea NOT NULL CHECK (length(bytes) BETWEEN 1 AND 4194304),
      created_at timestamptz NOT NULL DEFAULT now()
    )`
  // Images are compressed already
  yield* sql`ALTER TABLE payments.product_images ALTER COLUMN bytes SET STORAGE EXTERNAL`
})
