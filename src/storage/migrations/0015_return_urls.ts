import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * The pages that payers of an organization return to from checkout, by environment; null for the operator's. A process of
 * the previous version sends its payers to the operator's.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE payments.workspaces
      ADD COLUMN success_url text CHECK (length(success_url) <= 2048),
      ADD COLUMN cancel_url text CHECK (length(cancel_url) <= 2048),
      ADD COLUMN return_urls_updated_at timestamptz`
})
