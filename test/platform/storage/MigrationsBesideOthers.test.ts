import { SqlClient } from "@effect/sql"
import { Effect, Fiber, Layer, Option } from "effect"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { type Migrations, migrateTo, migrations } from "../../../src/platform/storage/Migrations.ts"
import { eventually } from "../../harness/Eventually.ts"
import { createMigratedDatabase, type TestDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { connect, makeTenant, readOn, tenant, waitsForLock } from "./PartitionBed.ts"

const migrateAsProcess = ({ url }: TestDatabase, all = migrations) =>
  Effect.flatMap(Layer.build(databaseLayer({ url })), (services) => Effect.provide(migrateTo(all), services))

describe("a database that is up to date", () => {
  it.scopedLive("is found so by a start while a backup reads all of its tables", function* () {
    const database = yield* createMigratedDatabase
    const backup = yield* readOn(yield* connect(database), "payments.migrations")
    yield* migrateAsProcess(database)
    yield* backup.end
  })

  it.scopedLive("is found so by a process of a version before", function* () {
    const database = yield* createMigratedDatabase
    const sql = yield* connect(database)
    yield* sql`INSERT INTO payments.migrations (migration_id, name) VALUES (9999, 'of_a_later_version')`
    const backup = yield* readOn(sql, "payments.migrations")
    yield* migrateAsProcess(database)
    yield* backup.end
  })
})

/** The worked example of contributors' guide: what the next version adds. */
const next: Migrations = {
  ...migrations,
  "0002_account_notes": Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.asVoid(sql`ALTER TABLE payments.provider_accounts ADD COLUMN note text`)
  )
}

/** What this version does to the table, while the next one migrates and afterwards. */
const link = (sql: SqlClient.SqlClient, account: string) => sql`
  INSERT INTO payments.provider_accounts (organization_id, environment, account_id, status, had_payments_before)
  VALUES (${tenant.organizationId}, 'sandbox', ${account}, 'connected', false)
  ON CONFLICT (organization_id, environment) DO UPDATE SET account_id = EXCLUDED.account_id
  RETURNING account_id AS account`

describe("a migration", () => {
  it.scopedLive("lets the version before work on at the table it waits for, and once it changed that", function* () {
    const database = yield* createMigratedDatabase
    const sql = yield* connect(database)
    yield* makeTenant(sql)
    const reader = yield* readOn(yield* connect(database), "payments.provider_accounts")
    const migrating = yield* Effect.fork(migrateAsProcess(database, next))
    yield* waitsForLock(sql, "the migration", "%ALTER TABLE payments.provider_accounts%")
    const before = yield* connect(database)
    expect(yield* link(before, "acct_1")).toEqual([{ account: "acct_1" }])
    yield* reader.end
    yield* Fiber.join(migrating)
    expect(yield* sql`SELECT note FROM payments.provider_accounts`).toEqual([{ note: null }])
    expect(yield* link(before, "acct_2")).toEqual([{ account: "acct_2" }])
    // A process of the version before starts as well
    yield* migrateAsProcess(database)
  })

  it.scopedLive("ends with its process, also while it waits for somebody's long transaction", function* () {
    const database = yield* createMigratedDatabase
    const sql = yield* connect(database)
    const reader = yield* readOn(yield* connect(database), "payments.provider_accounts")
    const migrating = yield* Effect.fork(migrateAsProcess(database, next))
    yield* waitsForLock(sql, "the migration", "%ALTER TABLE payments.provider_accounts%")
    const ended = yield* Effect.timeoutOption(Effect.disconnect(Fiber.interrupt(migrating)), "50 seconds")
    expect(Option.isSome(ended)).toBe(true)
    yield* eventually(
      "the end of its statements",
      Effect.map(
        sql`
              SELECT 1 FROM pg_stat_activity
              WHERE datname = current_database() AND state = 'active' AND query LIKE '%ALTER TABLE%'
                AND pid <> pg_backend_pid()`,
        (left) => Option.liftPredicate(left, ({ length }) => length === 0)
      )
    )
    yield* reader.end
    yield* migrateAsProcess(database, next)
    expect(yield* sql`SELECT note FROM payments.provider_accounts`).toEqual([])
  })
})
