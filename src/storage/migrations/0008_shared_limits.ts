import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * Limits that grant several tokens at a time, a limit on keys, who uploaded which image, and the provider as an author.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Tokens that the last request took. A process of the previous version neither writes nor reads it
  yield* sql`ALTER TABLE payments.rate_limits ADD COLUMN granted double precision NOT NULL DEFAULT 1`

  // The keys that count towards an organization's limit
  yield* sql`CREATE INDEX api_keys_unrevoked ON payments.api_keys (organization_id) WHERE revoked_at IS NULL`

  // An image belongs to no tenant, but its uploads do: a removal has to be recorded for each
  yield* sql`
    CREATE TABLE payments.product_image_uploads (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      file text NOT NULL CHECK (file ~ '^[0-9a-f]{64}[.](jpg|png|webp)$'),
      uploaded_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, file),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`
  yield* sql`CREATE INDEX product_image_uploads_file ON payments.product_image_uploads (file)`
  yield* sql`
    INSERT INTO payments.product_image_uploads (organization_id, environment, file, uploaded_at)
    SELECT organization_id, environment, target_id, min(at) FROM payments.audit_log
    WHERE action = 'product_image.uploaded' AND environment IS NOT NULL
    GROUP BY organization_id, environment, target_id`

  // The provider disconnects accounts, too. Existing rows are not checked: they satisfied the narrower constraint
  yield* sql`ALTER TABLE payments.audit_log DROP CONSTRAINT audit_log_author_kind_check`
  yield* sql`
    ALTER TABLE payments.audit_log ADD CONSTRAINT audit_log_author_kind_check
      CHECK (author_kind IN ('api_key', 'person', 'operator', 'provider')) NOT VALID`
})
