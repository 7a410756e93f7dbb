import { spawn } from "node:child_process"
import { once } from "node:events"
import { readdir } from "node:fs/promises"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Exit, Fiber, Layer, Option, Redacted } from "effect"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { MigrationFailed, migrate, migrations } from "../../../src/platform/storage/Migrations.ts"
import { eventually } from "../../harness/Eventually.ts"
import { program } from "../../harness/Program.ts"
import { createTestDatabase, type TestDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const connect = ({ url }: TestDatabase) =>
  Effect.map(Layer.build(databaseLayer({ url, poolSize: 2 })), Context.get(SqlClient.SqlClient))

const migrateOn = (sql: SqlClient.SqlClient) => Effect.provideService(migrate, SqlClient.SqlClient, sql)

const applied = (sql: SqlClient.SqlClient) =>
  sql<{ id: number; name: string }>`SELECT migration_id AS id, name FROM payments.migrations ORDER BY migration_id`

const expected = Object.keys(migrations).map((key) => {
  const [id = "", ...name] = key.split("_")
  return { id: Number(id), name: name.join("_") }
})

/** Everything in the schema, with what changes when anything is made anew. */
const fingerprint = (sql: SqlClient.SqlClient) =>
  Effect.all([
    sql`
      SELECT c.oid, c.relname, c.relkind, c.relfilenode FROM pg_class c
      WHERE c.relnamespace = 'payments'::regnamespace ORDER BY c.oid`,
    sql`SELECT xmin::text, * FROM payments.migrations ORDER BY migration_id`
  ])

const runProcess = (url: string) =>
  Effect.promise(async () => {
    const script = program("test/platform/storage/fixtures/migrate.ts")
    const child = spawn(process.execPath, [...script, url], { stdio: ["ignore", "ignore", "pipe"] })
    let errors = ""
    child.stderr.on("data", (chunk: Buffer) => {
      errors += chunk.toString()
    })
    const [code] = await once(child, "close")
    return { code, errors }
  })

describe("the record of migrations", () => {
  it.effect("is the folder", function* () {
    const folder = new URL("../../../src/platform/storage/migrations/", import.meta.url)
    const files = yield* Effect.promise(() => readdir(folder))
    expect(files.map((file) => file.replace(/\.ts$/, "")).sort()).toEqual(Object.keys(migrations).sort())
  })

  it("has well-formed keys, ascending without a gap: the migrator silently skips any other", () => {
    const keys = Object.keys(migrations)
    for (const key of keys) expect(key).toMatch(/^\d{4}_[a-z][a-z0-9_]*$/)
    expect(keys.map((key) => Number.parseInt(key, 10))).toEqual(keys.map((_, index) => index + 1))
  })
})

describe("migrate", () => {
  it.scopedLive("applies everything once when ten start at once on an empty database", function* () {
    const database = yield* createTestDatabase()
    const clients = yield* Effect.all(
      Array.from({ length: 10 }, () => connect(database)),
      { concurrency: 10 }
    )
    yield* Effect.forEach(clients, migrateOn, { concurrency: "unbounded" })
    const [sql] = clients
    expect(sql === undefined ? [] : yield* applied(sql)).toEqual(expected)
  })

  it.scopedLive("applies everything once when five processes start at once", function* () {
    const database = yield* createTestDatabase()
    const ends = yield* Effect.all(
      Array.from({ length: 5 }, () => runProcess(Redacted.value(database.url))),
      { concurrency: 5 }
    )
    for (const end of ends) expect(end).toEqual({ code: 0, errors: "" })
    expect(yield* applied(yield* connect(database))).toEqual(expected)
  })

  it.scopedLive("changes nothing the second time", function* () {
    const sql = yield* connect(yield* createTestDatabase())
    yield* migrateOn(sql)
    const before = yield* fingerprint(sql)
    yield* migrateOn(sql)
    expect(yield* fingerprint(sql)).toEqual(before)
  })

  it.scopedLive("waits for a process that is migrating, and goes on when that one dies", function* () {
    const database = yield* createTestDatabase()
    const sql = yield* connect(database)
    const other = yield* connect(database)
    // The lock's number is part of what released versions agree on
    const [holder] = yield* other<{ pid: number }>`
        SELECT pg_backend_pid() AS pid FROM pg_advisory_lock(hashtextextended('"payments"', 5190277301))`
    const migrating = yield* Effect.fork(migrateOn(sql))
    yield* eventually(
      "a look at the lock",
      Effect.map(
        other`
            SELECT 1 FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%pg_try_advisory_lock%'`,
        ([row]) => Option.fromNullable(row)
      )
    )
    expect(yield* other`SELECT 1 FROM pg_namespace WHERE nspname = 'payments'`).toEqual([])
    expect(Option.isNone(yield* Fiber.poll(migrating))).toBe(true)
    yield* sql`SELECT pg_terminate_backend(${holder?.pid ?? 0})`
    yield* Fiber.join(migrating)
    expect(yield* applied(sql)).toEqual(expected)
  })

  it.scopedLive("stops waiting for a migrating process when told to stop, and leaves the lock alone", function* () {
    const database = yield* createTestDatabase()
    const sql = yield* connect(database)
    const other = yield* connect(database)
    yield* other`SELECT FROM pg_advisory_lock(hashtextextended('"payments"', 5190277301))`
    const looking = other`
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%pg_try_advisory_lock%'`
    const migrating = yield* Effect.fork(migrateOn(sql))
    yield* eventually(
      "a look at the lock",
      Effect.map(looking, ([row]) => Option.fromNullable(row))
    )
    const stopped = yield* Effect.timeoutOption(Effect.disconnect(Fiber.interrupt(migrating)), "30 seconds")
    expect(yield* other`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`).toHaveLength(1)
    // Otherwise the end of a failed test would wait for it
    yield* other`SELECT pg_advisory_unlock_all()`
    expect(Option.map(stopped, Exit.isInterrupted)).toEqual(Option.some(true))
  })

  it.scopedLive("fails with the name of the migration that fails, applies nothing, and can be run again", function* () {
    const sql = yield* connect(yield* createTestDatabase())
    yield* sql`CREATE SCHEMA payments`
    // A table of this name needs the name for its own type
    yield* sql`CREATE TYPE payments.deliveries AS ENUM ()`
    const failure = yield* Effect.flip(migrateOn(sql))
    expect(failure).toBeInstanceOf(MigrationFailed)
    expect(failure.message).toContain("1_initial")
    expect(String(failure.cause)).toContain("1_initial")
    expect(yield* sql`SELECT 1 FROM pg_class WHERE relname = 'organizations'`).toEqual([])
    expect(yield* applied(sql)).toEqual([])
    yield* sql`DROP TYPE payments.deliveries`
    yield* migrateOn(sql)
    expect(yield* applied(sql)).toEqual(expected)
  })
})
