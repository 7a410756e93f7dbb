import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * The outcome of earlier tries under an idempotency key, if their effect is outside the database. A process of the
 * previous version, which knows none of these columns, leaves the defaults.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE payments.idempotency_keys
      -- The last try was refused without an effect: the key is free for other parameters
      ADD COLUMN free boolean NOT NULL DEFAULT false,
      -- Nobody knows whether a try before the last one had its effect: the key stays with its parameters
      ADD COLUMN uncertain boolean NOT NULL DEFAULT false,
      -- Tries that were refused: each has keys of its own at the provider
      ADD COLUMN refusals integer NOT NULL DEFAULT 0`
})
