import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * Which worker holds which shard of the endpoints: see `src/storage/Cluster.ts`. `@effect/cluster` would create these
 * tables itself, but two processes that do so at once would refuse each other. Not logged: after a crash of the server,
 * the workers that live write everything again within seconds. A process of the previous version does not know them, and
 * claims for all endpoints.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE UNLOGGED TABLE payments.cluster_runners (
      machine_id serial PRIMARY KEY,
      address varchar(255) NOT NULL UNIQUE,
      runner text NOT NULL,
      healthy boolean NOT NULL DEFAULT true,
      last_heartbeat timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = 50)`
  yield* sql`
    CREATE UNLOGGED TABLE payments.cluster_locks (
      shard_id varchar(50) PRIMARY KEY,
      address varchar(255) NOT NULL,
      acquired_at timestamptz NOT NULL
    ) WITH (fillfactor = 25)`
})
