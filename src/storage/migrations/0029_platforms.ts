import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * The platform's own account at the provider, per environment, under which accounts are linked. A process whose key is of
 * another platform is refused access to all of them, and has to know that this says nothing about the accounts.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    CREATE TABLE payments.provider_platforms (
      environment text PRIMARY KEY CHECK (environment IN ('sandbox', 'production')),
      platform_id text NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now()
    )`
})
