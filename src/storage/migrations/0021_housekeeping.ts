import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** Which process did each kind of housekeeping last, and when it began: see `src/kit/Housekeeping.ts`. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE payments.housekeeping (
      name text PRIMARY KEY,
      process uuid NOT NULL,
      begun_at timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = 50)`
})
