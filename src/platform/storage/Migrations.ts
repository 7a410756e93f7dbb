import { Migrator, SqlClient, SqlError } from "@effect/sql"
import { Data, Duration, Effect, Layer, Predicate, Schedule } from "effect"
import { isWithoutLock, reservedConnections, withSqlErrors } from "./Database.ts"
import initial from "./migrations/0001_initial.ts"
import { addDays, lockRetries, shortLockTimeout } from "./partitions/DayPartitions.ts"
import { addReceiptMonths } from "./partitions/ReceiptMonths.ts"
import { lockKey, schemaOf } from "./Schema.ts"
import { requireSession } from "./SessionSettings.ts"

export type Migrations = Readonly<Record<string, Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>>>

/**
 * All migrations, in order. They are listed here rather than read from a folder, so that they survive bundling; a test
 * compares the folder with this record. Keys are `<id>_<name>`; a released migration never changes.
 */
export const migrations: Migrations = {
  "0001_initial": initial
}

/** The schema could not be brought up to date; the message, for operators, names the migration. */
export class MigrationFailed extends Data.TaggedError("MigrationFailed")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/** Of the advisory lock: other users of the database are unlikely to have chosen the same. */
const migrationLock = lockKey(5_190_277_301)

const turnTimeout = Duration.minutes(5)

/**
 * The names of the applied migrations, in order; undefined if there is no table of them. Read before running the
 * migrator, which locks out all readers of that table even if there is nothing to do: no process could start while a
 * `pg_dump` reads it.
 */
export const appliedMigrations: Effect.Effect<
  ReadonlyArray<string> | undefined,
  SqlError.SqlError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql<{ exists: boolean }>`SELECT to_regclass('payments.migrations') IS NOT NULL AS exists`
  if (found?.exists !== true) return undefined
  const rows = yield* sql<{ name: string }>`
    SELECT lpad(migration_id::text, 4, '0') || '_' || name AS name FROM payments.migrations
    ORDER BY migration_id`
  return rows.map(({ name }) => name)
})

/**
 * Applies all pending migrations in one transaction. The lock timeout for each table is short, since other statements
 * queue behind the waiting migration; the whole is retried for some minutes.
 */
const apply = (migrations: Migrations) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const applied = yield* appliedMigrations
    if (applied !== undefined && Object.keys(migrations).every((name) => applied.includes(name))) return
    const run = Migrator.make({})
    const table = `${schemaOf(sql)}.migrations`
    // The migrator looks for its table by a statement that fails, which would abort a transaction
    if (applied === undefined) yield* run({ loader: Migrator.fromRecord({}), table })
    yield* withSqlErrors(sql)(
      Effect.zipRight(
        sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`,
        run({ loader: Migrator.fromRecord(migrations), table })
      )
    )
  }).pipe(
    Effect.catchAllDefect((cause) => new MigrationFailed({ message: describeDefect(cause), cause })),
    Effect.catchTag("MigrationError", (cause) => new MigrationFailed({ message: cause.message, cause })),
    Effect.retry({ while: (error) => isWithoutLock(rootOf(error)), schedule: lockRetries }),
    Effect.catchIf(
      (error) => error instanceof SqlError.SqlError && isWithoutLock(error),
      (cause) =>
        new MigrationFailed({
          message:
            "A long transaction, such as a backup by pg_dump, holds a lock on the record of migrations: run this again once it has ended",
          cause
        })
    )
  )

const rootOf = (error: unknown): unknown =>
  Predicate.hasProperty(error, "cause") && !(error instanceof SqlError.SqlError) ? rootOf(error.cause) : error

/**
 * Brings the schema up to date with these migrations, and creates the tables for the coming days and months.
 * Any number of processes may start at once: one migrates while it holds a session-level advisory lock, the others wait
 * and find nothing to do. Fails if the database or its connections are unsuitable: see `requireSession`.
 */
export const migrateTo = (
  migrations: Migrations
): Effect.Effect<void, MigrationFailed | SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* requireSession
      // One holds the lock, one migrates, for as long as the tables' sizes require, and one cancels that if this
      // process is told to stop
      const sql = yield* reservedConnections(3, { unbounded: true })
      const connection = yield* sql.reserve
      const run = (statement: string) => connection.execute(sql.unsafe(statement).compile()[0], [], undefined)
      const tryLock = run(`SELECT pg_try_advisory_lock(${migrationLock}) AS locked`)
      // Interruptible: a process stopped while it waits must not stay until another one has migrated
      yield* Effect.acquireReleaseInterruptible(
        tryLock.pipe(
          Effect.filterOrFail(
            (rows) => rows[0]?.locked === true,
            () => new MigrationFailed({ message: "Another process has been migrating the database for too long" })
          ),
          Effect.retry({
            while: (error) => error._tag === "MigrationFailed",
            schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo(turnTimeout))
          })
        ),
        // Closing the session also releases the lock, so a failure here may be ignored. A no-op without the lock
        () => Effect.ignore(run(`SELECT pg_advisory_unlock(${migrationLock})`))
      )
      // Even if the schema exists, "IF NOT EXISTS" requires the right to create one, which is needed only once
      const [schema] = yield* sql<{ readonly isForeign: boolean }>`
        SELECT to_regclass('payments.migrations') IS NULL
          AND EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = n.oid) AS "isForeign"
        FROM pg_namespace n WHERE n.oid = to_regnamespace('"payments"')`
      // Old tables are found, and removed, by their names
      if (schema?.isForeign === true) {
        return yield* new MigrationFailed({
          message: `The schema ${schemaOf(sql)} holds tables of something else: choose another name (DATABASE_SCHEMA)`
        })
      }
      if (schema === undefined) yield* sql`CREATE SCHEMA "payments"`
      yield* Effect.all([apply(migrations), addDays, addReceiptMonths]).pipe(
        Effect.provideService(SqlClient.SqlClient, sql)
      )
    })
  ).pipe(Effect.withSpan("Migrations.migrate"))

/** Brings the schema up to date with this version: see `migrateTo`. */
export const migrate = migrateTo(migrations)

const describeDefect = (defect: unknown): string => (defect instanceof Error ? defect.message : String(defect))

/** Runs `migrate` when the layer is built; the service's other layers depend on it. */
export const migrationsLayer: Layer.Layer<never, MigrationFailed | SqlError.SqlError, SqlClient.SqlClient> =
  Layer.effectDiscard(migrate)
