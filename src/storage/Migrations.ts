import { Migrator, SqlClient, SqlError } from "@effect/sql"
import { Cause, Data, Duration, Effect, Layer, Predicate, Schedule } from "effect"
import { warnOfChangedOrder } from "./Collation.ts"
import { isWithoutLock, reservedConnections, withSqlErrors } from "./Database.ts"
import { abandonDayPartitions, addDays, lockPatience, prepareDayPartitions, shortLockTimeout } from "./DayPartitions.ts"
import {
  eventIndexPreparation,
  eventsByPayment,
  eventsByPublicId,
  firstEventsByPayment,
  firstEventsByPublicId,
  refundsByCharge
} from "./EventIndexes.ts"
import initial from "./migrations/0001_initial.ts"
import access from "./migrations/0002_access.ts"
import productImages from "./migrations/0003_product_images.ts"
import reports from "./migrations/0004_reports.ts"
import upkeep from "./migrations/0005_upkeep.ts"
import endpoints from "./migrations/0006_endpoints.ts"
import deliveryQueue from "./migrations/0007_delivery_queue.ts"
import sharedLimits from "./migrations/0008_shared_limits.ts"
import queueAndWarnings from "./migrations/0009_queue_and_warnings.ts"
import unreadableNotifications from "./migrations/0010_unreadable_notifications.ts"
import idempotencyTries from "./migrations/0011_idempotency_tries.ts"
import provenanceAndSessions from "./migrations/0012_provenance_and_sessions.ts"
import tenantVersions from "./migrations/0013_tenant_versions.ts"
import dayPartitions from "./migrations/0014_day_partitions.ts"
import returnUrls from "./migrations/0015_return_urls.ts"
import eventStream from "./migrations/0016_event_stream.ts"
import checkoutPages from "./migrations/0017_checkout_pages.ts"
import eventReplays from "./migrations/0018_event_replays.ts"
import receiptMonths from "./migrations/0019_receipt_months.ts"
import eventsByPaymentIndex from "./migrations/0020_events_by_payment.ts"
import cluster from "./migrations/0021_cluster.ts"
import accountConnecting from "./migrations/0022_account_connecting.ts"
import statistics from "./migrations/0023_statistics.ts"
import eventsByHour from "./migrations/0024_events_by_hour.ts"
import roomForAttempts from "./migrations/0025_room_for_attempts.ts"
import confirmedAccess from "./migrations/0026_confirmed_access.ts"
import endpointsInUse from "./migrations/0027_endpoints_in_use.ts"
import refundsByChargeIndex from "./migrations/0028_refunds_by_charge.ts"
import platforms from "./migrations/0029_platforms.ts"
import ages from "./migrations/0030_ages.ts"
import { abandonReceiptMonths, addReceiptMonths, prepareReceiptMonths } from "./ReceiptMonths.ts"
import { requireSession } from "./SessionSettings.ts"

/**
 * All migrations, in order. They are registered here rather than read from a folder, so that they survive bundling; a
 * test compares the folder with this record. Keys are `<id>_<name>`; a migration that has been released never changes.
 */
export const migrations: Readonly<Record<string, Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>>> = {
  "0001_initial": initial,
  "0002_access": access,
  "0003_product_images": productImages,
  "0004_reports": reports,
  "0005_upkeep": upkeep,
  "0006_endpoints": endpoints,
  "0007_delivery_queue": deliveryQueue,
  "0008_shared_limits": sharedLimits,
  "0009_queue_and_warnings": queueAndWarnings,
  "0010_unreadable_notifications": unreadableNotifications,
  "0011_idempotency_tries": idempotencyTries,
  "0012_provenance_and_sessions": provenanceAndSessions,
  "0013_tenant_versions": tenantVersions,
  "0014_day_partitions": dayPartitions,
  "0015_return_urls": returnUrls,
  "0016_event_stream": eventStream,
  "0017_checkout_pages": checkoutPages,
  "0018_event_replays": eventReplays,
  "0019_receipt_months": receiptMonths,
  "0020_events_by_payment": eventsByPaymentIndex,
  "0021_cluster": cluster,
  "0022_account_connecting": accountConnecting,
  "0023_statistics": statistics,
  "0024_events_by_hour": eventsByHour,
  "0025_room_for_attempts": roomForAttempts,
  "0026_confirmed_access": confirmedAccess,
  "0027_endpoints_in_use": endpointsInUse,
  "0028_refunds_by_charge": refundsByChargeIndex,
  "0029_platforms": platforms,
  "0030_ages": ages
}

/** What comes before a migration that would take long on large tables. */
interface Preparation {
  /** In transactions of its own, while the service works. Repeating it does no harm. */
  readonly prepare: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>
  /** Undoes it if it, or the migration, fails. */
  readonly abandon: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>
}

/** By the id of the migration. The migrations before it have a transaction of their own. */
const preparations: ReadonlyMap<number, Preparation> = new Map([
  [14, { prepare: prepareDayPartitions, abandon: abandonDayPartitions }],
  [18, eventIndexPreparation(firstEventsByPublicId)],
  [19, { prepare: prepareReceiptMonths, abandon: abandonReceiptMonths }],
  [20, eventIndexPreparation(firstEventsByPayment)],
  [24, eventIndexPreparation(eventsByPublicId, eventsByPayment)],
  [28, eventIndexPreparation(refundsByCharge)]
])

/** The schema could not be brought up to date; the message names the migration. For operators. */
export class MigrationFailed extends Data.TaggedError("MigrationFailed")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/** The key of the advisory lock: any number that no other user of the database is likely to have chosen. */
const migrationLock = 5_190_277_301

/** How long a starting process waits for another one's migrations. */
const turnPatience = Duration.minutes(5)

const table = "payments.migrations"

/**
 * The id of the last migration that a table of migrations names, 0 if it names none; undefined if there is no such table.
 * To be looked at before the migrator, which locks that table against all who read it, even if there is nothing to do:
 * while a `pg_dump` does, no process could start.
 */
const lastApplied = (table: string): Effect.Effect<number | undefined, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql<{ exists: boolean }>`SELECT to_regclass(${table}) IS NOT NULL AS exists`
    if (found?.exists !== true) return undefined
    const [row] = yield* sql<{ last: number }>`
      SELECT COALESCE(max(migration_id), 0) AS last FROM ${sql.literal(table)}`
    return row?.last
  })

/**
 * Applies the migrations before this id that have not been applied yet, in one transaction. Each table that they need is
 * waited for only for a moment, since everybody else waits behind that, and all of them are tried again for some minutes.
 */
const applyBefore = (id: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const last = yield* lastApplied(table)
    const wanted = Object.entries(migrations).filter(([key]) => Number.parseInt(key, 10) < id)
    if (last !== undefined && wanted.every(([key]) => Number.parseInt(key, 10) <= last)) return
    const run = Migrator.make({})
    // It looks for its table by a statement that fails, which would end a transaction
    if (last === undefined) yield* run({ loader: Migrator.fromRecord({}), table })
    yield* withSqlErrors(sql)(
      Effect.zipRight(
        sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`,
        run({ loader: Migrator.fromRecord(Object.fromEntries(wanted)), table })
      )
    )
  }).pipe(
    Effect.catchAllDefect((cause) => new MigrationFailed({ message: describeDefect(cause), cause })),
    Effect.catchTag("MigrationError", (cause) => new MigrationFailed({ message: cause.message, cause })),
    Effect.retry({ while: (error) => isWithoutLock(rootOf(error)), schedule: lockPatience }),
    Effect.catchIf(
      (error) => error instanceof SqlError.SqlError && isWithoutLock(error),
      (cause) =>
        new MigrationFailed({
          message:
            "A long transaction, such as a backup by pg_dump, keeps the record of migrations: repeat this after it",
          cause
        })
    )
  )

/** The error that a chain of causes began with. */
const rootOf = (error: unknown): unknown =>
  Predicate.hasProperty(error, "cause") && !(error instanceof SqlError.SqlError) ? rootOf(error.cause) : error

const isAppliedYet = (id: number) => Effect.map(lastApplied(table), (last = 0) => last >= id)

/** How long a process that is told to stop tries to undo a preparation. */
const undoPatience = "2 seconds"

/**
 * Undoes a preparation, for as long as transactions that use the tables require. A process that is told to stop does not
 * wait for them: what it leaves is what a killed one leaves, and the next one that migrates begins by undoing that.
 */
const undo =
  (abandon: Preparation["abandon"]) =>
  <E>(cause: Cause.Cause<E>): Effect.Effect<void, never, SqlClient.SqlClient> => {
    const tried = Effect.ignoreLogged(abandon)
    return Cause.isInterrupted(cause)
      ? Effect.asVoid(Effect.timeoutOption(Effect.interruptible(tried), undoPatience))
      : tried
  }

const applyAll = Effect.gen(function* () {
  for (const [id, { abandon, prepare }] of preparations) {
    yield* applyBefore(id)
    if (yield* isAppliedYet(id)) continue
    yield* Effect.zipRight(prepare, applyBefore(id + 1)).pipe(Effect.onError(undo(abandon)))
  }
  yield* applyBefore(Number.POSITIVE_INFINITY)
  yield* addDays
  yield* addReceiptMonths
})

/**
 * Brings the schema `payments` up to date, and adds the tables for the days and months that begin. Safe when any number
 * of processes start at once: one migrates while it holds a session-level advisory lock, the others wait and find nothing
 * to do. Fails if the database or its connections can't be worked with: see `requireSession`. Warns operators of indexes that can't be trusted any more: see `warnOfChangedOrder`.
 */
export const migrate: Effect.Effect<void, MigrationFailed | SqlError.SqlError, SqlClient.SqlClient> = Effect.scoped(
  Effect.gen(function* () {
    yield* requireSession
    // One holds the lock, another migrates, for as long as the tables' sizes require, and the third cancels that if this
    // process is told to stop
    const sql = yield* reservedConnections(3, { unbounded: true })
    const connection = yield* sql.reserve
    const tryLock = connection.execute(`SELECT pg_try_advisory_lock(${migrationLock}) AS locked`, [], undefined)
    // Interruptible: a process that is stopped while it waits must not stay for as long as another one migrates
    yield* Effect.acquireReleaseInterruptible(
      tryLock.pipe(
        Effect.filterOrFail(
          (rows) => rows[0]?.locked === true,
          () => new MigrationFailed({ message: "Another process has been migrating the database for too long" })
        ),
        Effect.retry({
          while: (error) => error._tag === "MigrationFailed",
          schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo(turnPatience))
        })
      ),
      // Closing the session releases the lock as well, so a failure here may be ignored. Without the lock it does nothing
      () => Effect.ignore(connection.execute(`SELECT pg_advisory_unlock(${migrationLock})`, [], undefined))
    )
    // Even if it exists, "IF NOT EXISTS" asks for the right to create one, which is needed only once
    const [schema] = yield* sql`SELECT 1 FROM pg_namespace WHERE nspname = 'payments'`
    if (schema === undefined) yield* sql`CREATE SCHEMA payments`
    yield* Effect.provideService(Effect.zipRight(applyAll, warnOfChangedOrder), SqlClient.SqlClient, sql)
  })
).pipe(Effect.withSpan("Migrations.migrate"))

const describeDefect = (defect: unknown): string => (defect instanceof Error ? defect.message : String(defect))

/** Runs `migrate` when the layer is built; the service's other layers depend on it. */
export const migrationsLayer: Layer.Layer<never, MigrationFailed | SqlError.SqlError, SqlClient.SqlClient> =
  Layer.effectDiscard(migrate)
