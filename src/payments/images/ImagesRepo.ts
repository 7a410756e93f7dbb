import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { anyRow } from "../../platform/storage/Database.ts"
import type { ImageName } from "./ImageStore.ts"

export const makeImagesRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const isNamed = ({ format, sha256 }: ImageName) => sql`sha256 = ${Buffer.from(sha256, "hex")} AND format = ${format}`

  return {
    size: (name: ImageName) =>
      Effect.map(
        sql<{ size: number }>`
          SELECT octet_length(bytes) AS size FROM payments.product_images WHERE ${isNamed(name)}`,
        ([row]) => Option.map(Option.fromNullable(row), ({ size }) => size)
      ),

    /** Up to `length` bytes. The column is stored uncompressed, so that a slice can be read without the rest. */
    slice: (name: ImageName, from: number, length: number) =>
      Effect.map(
        sql<{ slice: Uint8Array }>`
          SELECT substring(bytes FROM ${from + 1}::int FOR ${length}::int) AS slice FROM payments.product_images
          WHERE ${isNamed(name)}`,
        ([row]) => row?.slice ?? new Uint8Array()
      ),

    /** Whether an image is stored. The lock makes a removal wait, so that it removes the upload's record, too. */
    lock: ({ sha256 }: ImageName) =>
      anyRow(sql`SELECT 1 FROM payments.product_images WHERE sha256 = ${Buffer.from(sha256, "hex")} FOR KEY SHARE`),

    insert: ({ format, sha256 }: ImageName, bytes: Uint8Array) =>
      Effect.asVoid(sql`
        INSERT INTO payments.product_images (sha256, format, bytes)
        VALUES (${Buffer.from(sha256, "hex")}, ${format}, ${Buffer.from(bytes)})
        ON CONFLICT (sha256) DO NOTHING`),

    remove: (name: ImageName) => anyRow(sql`DELETE FROM payments.product_images WHERE ${isNamed(name)} RETURNING 1`),

    recordUpload: (file: string, { environment, organizationId }: Tenant) =>
      sql`
        INSERT INTO payments.product_image_uploads (organization_id, environment, file)
        VALUES (${organizationId}, ${environment}, ${file}) ON CONFLICT DO NOTHING`,

    /** Across tenants: an image belongs to everybody who uploaded its bytes. Returns them. */
    forgetUploads: (file: string) => sql<Tenant>`
      DELETE FROM payments.product_image_uploads WHERE file = ${file}
      RETURNING organization_id AS "organizationId", environment`
  }
})
