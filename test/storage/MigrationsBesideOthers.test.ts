import type { SqlClient } from "@effect/sql"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Layer, Option } from "effect"
import { databaseLayer } from "../../src/storage/Database.ts"
import { migrate } from "../../src/storage/Migrations.ts"
import { eventually } from "../harness/Eventually.ts"
import { createMigratedDatabase, type TestDatabase } from "../harness/TestDatabase.ts"
import { connect, databaseBeforeMigration, readOn, waitsForLock } from "./PartitionBed.ts"

/** As a process does it, with connections of its own for the migrations. */
const migrateAsProcess = ({ url }: TestDatabase) =>
  Effect.flatMap(Layer.build(databaseLayer({ url })), (services) => Effect.provide(migrate, services))

/** Begins a transaction that sees the database as it is now, like a `pg_dump`. */
const beginDump = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const begun = yield* Deferred.make<void>()
    const dump = yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`.pipe(
      Effect.zipRight(sql`SELECT count(*) FROM payments.events`),
      Effect.zipRight(Deferred.succeed(begun, undefined)),
      Effect.zipRight(Effect.never),
      sql.withTransaction,
      Effect.forkScoped
    )
    yield* Deferred.await(begun)
    return { end: Fiber.interrupt(dump) }
  })

describe("a database that is up to date", () => {
  it.scopedLive("is found so by a start while a backup reads all of its tables", () =>
    Effect.gen(function* () {
      const database = yield* createMigratedDatabase
      const backup = yield* readOn(yield* connect(database), "payments.migrations")
      yield* Effect.timeout(migrateAsProcess(database), "10 seconds")
      yield* backup.end
    })
  )

  it.scopedLive("is found so by a process of a version before", () =>
    Effect.gen(function* () {
      const database = yield* createMigratedDatabase
      const sql = yield* connect(database)
      yield* sql`INSERT INTO payments.migrations (migration_id, name) VALUES (9999, 'of_a_later_version')`
      const backup = yield* readOn(sql, "payments.migrations")
      yield* Effect.timeout(migrateAsProcess(database), "10 seconds")
      yield* backup.end
    })
  )
})

describe("a migration", () => {
  it.scopedLive("lets others at a table that it waits for, whichever migration it is", () =>
    Effect.gen(function* () {
      const { database, sql } = yield* databaseBeforeMigration("0021")
      const reader = yield* readOn(yield* connect(database), "payments.provider_accounts")
      const migrating = yield* Effect.fork(migrateAsProcess(database))
      yield* waitsForLock(sql, "the migration", "%ALTER TABLE payments.provider_accounts%")
      const other = yield* connect(database, "3 seconds")
      yield* other`SELECT 1 FROM payments.provider_accounts`
      yield* reader.end
      yield* Fiber.join(migrating)
      expect(yield* sql`SELECT 1 FROM payments.migrations WHERE migration_id = 28`).toHaveLength(1)
    })
  )

  it.scopedLive(
    "ends with its process, also while it waits for somebody's long transaction",
    () =>
      Effect.gen(function* () {
        const { database, sql } = yield* databaseBeforeMigration("0024")
        const dump = yield* beginDump(yield* connect(database))
        const migrating = yield* Effect.fork(migrateAsProcess(database))
        yield* waitsForLock(sql, "the index", "%CREATE INDEX CONCURRENTLY%")
        const [took, ended] = yield* Fiber.interrupt(migrating).pipe(
          Effect.disconnect,
          Effect.timeoutOption("20 seconds"),
          Effect.timed
        )
        expect(Option.isSome(ended), Duration.format(took)).toBe(true)
        yield* eventually(
          "the end of its statements",
          Effect.map(
            sql`
              SELECT 1 FROM pg_stat_activity
              WHERE datname = current_database() AND state = 'active' AND query LIKE '%CONCURRENTLY%'
                AND pid <> pg_backend_pid()`,
            (left) => Option.liftPredicate(left, ({ length }) => length === 0)
          )
        )
        yield* dump.end
        yield* migrateAsProcess(database)
        const invalid = yield* sql`SELECT 1 FROM pg_index WHERE NOT indisvalid`
        expect(invalid).toEqual([])
      }),
    60_000
  )
})
