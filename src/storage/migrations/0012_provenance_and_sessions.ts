import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * Who created a key or an invitation, so that it ends with the creator's right to give it; and when a session was last
 * used, and by which client. A process of the previous version leaves the defaults: an unknown creator.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  for (const table of ["api_keys", "invitations"]) {
    yield* sql`
      ALTER TABLE payments.${sql.literal(table)}
        ADD COLUMN created_by_kind text CHECK (created_by_kind IN ('api_key', 'person', 'operator', 'provider')),
        ADD COLUMN created_by_id text,
        ADD CHECK ((created_by_kind IS NULL) = (created_by_id IS NULL))`
  }

  // Open invitations of an organization that one person sent
  yield* sql`
    CREATE INDEX invitations_open_by_creator ON payments.invitations (organization_id, created_by_id)
    WHERE accepted_at IS NULL AND revoked_at IS NULL`

  yield* sql`
    ALTER TABLE payments.sessions
      -- To the minute
      ADD COLUMN last_used_at timestamptz NOT NULL DEFAULT now(),
      -- Such as 'Firefox on Linux'; null where the client did not say, or is no browser that we know
      ADD COLUMN client text`

  // The other open links of a person who signs in
  yield* sql`CREATE INDEX login_tokens_open ON payments.login_tokens (email) WHERE used_at IS NULL`
})
