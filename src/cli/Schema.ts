import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { type MigrationFailed, migrate, migrations } from "../storage/Migrations.ts"
import { CommandFailed } from "./Failure.ts"

/** The names of the migrations that the database has, in order, such as `0001_initial`. */
const appliedMigrations: Effect.Effect<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const [known] = yield* sql<{ exists: boolean }>`SELECT to_regclass('payments.migrations') IS NOT NULL AS exists`
    if (known?.exists !== true) {
      return []
    }
    const rows = yield* sql<{ name: string }>`
      SELECT lpad(migration_id::text, 4, '0') || '_' || name AS name FROM payments.migrations ORDER BY migration_id`
    return rows.map(({ name }) => name)
  }
)

/** Brings the schema up to date; returns which migrations it lacked, even if another process has run them. */
export const applyMigrations: Effect.Effect<
  ReadonlyArray<string>,
  SqlError.SqlError | MigrationFailed,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const before = new Set(yield* appliedMigrations)
  yield* migrate
  return (yield* appliedMigrations).filter((name) => !before.has(name))
})

/** Requires an up-to-date schema. Only `migrate` changes the schema of a shared database. */
export const requireCurrentSchema: Effect.Effect<void, SqlError.SqlError | CommandFailed, SqlClient.SqlClient> =
  Effect.gen(function* () {
    const applied = new Set(yield* appliedMigrations)
    const missing = Object.keys(migrations).filter((name) => !applied.has(name))
    if (missing.length > 0) {
      return yield* new CommandFailed({
        message: `The database lacks ${missing.length === 1 ? "a migration" : `${missing.length} migrations`} (${missing.join(", ")}). Run: connected-payments migrate`
      })
    }
  })
