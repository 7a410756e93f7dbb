import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** Synthetic tests of endpoints, and indexes for ending rotated secrets and deleted endpoints. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // The times of the last synthetic tests, at least those of the last minute: at most five, so that the limit per
  // minute is exact for any number of processes, and needs no search through deliveries
  yield* sql`
    ALTER TABLE payments.endpoints
      ADD COLUMN recent_tests timestamptz[] NOT NULL DEFAULT '{}' CHECK (cardinality(recent_tests) <= 5)`

  // Few rows: recently rotated secrets, and deleted endpoints
  yield* sql`
    CREATE INDEX endpoint_secrets_retired ON payments.endpoint_secrets (retired_at) WHERE retired_at IS NOT NULL`
  yield* sql`CREATE INDEX endpoints_deleted ON payments.endpoints (deleted_at) WHERE deleted_at IS NOT NULL`
})
