import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { orUnavailable, sessionClient } from "../../platform/storage/Database.ts"
import { addDays, noteWaitingDays, removeDays } from "../../platform/storage/DayPartitions.ts"
import { makeEventReplaysRepo } from "../event-replays/EventReplaysRepo.ts"
import { makeRecoveriesRepo } from "../recoveries/RecoveriesRepo.ts"

export interface RetentionOptions {
  /** How long finished deliveries, and payloads that no delivery needs, are kept (contract 9.6). */
  readonly keepFor: Duration.Duration
}

/** Removes deliveries and payloads after their retention (contract 9.6). */
export class Retention extends Context.Tag("connected-payments/deliveries/Retention")<
  Retention,
  {
    /**
     * Removes everything whose retention has ended. Deliveries with their attempts, and events, are removed a day at a
     * time, once the whole day has expired: a delivery that still waits, or is re-sent, keeps its day. Records of
     * skipped and published events, finished recoveries and replays are removed in small batches. Any number of
     * processes may run it at the same time. Queued deliveries and their events are never removed, however old they
     * are.
     *
     * Also creates the tables for the next days.
     */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
    /** Logs waiting deliveries with dangling references. */
    readonly checkReferences: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer = (options: RetentionOptions): Layer.Layer<Retention, never, SqlClient.SqlClient> =>
    Layer.scoped(Retention, make(options))
}

const make = Effect.fnUntraced(function* ({ keepFor }: RetentionOptions) {
  const sql = yield* SqlClient.SqlClient
  const session = yield* sessionClient
  const recoveries = yield* makeRecoveriesRepo
  const replays = yield* makeEventReplaysRepo
  const keepForMillis = Duration.toMillis(keepFor)
  const removeRecords = (table: string, ...key: ReadonlyArray<string>) =>
    removeOld(sql, {
      table,
      key: ["organization_id", "environment", ...key],
      old: sql`r.created_at < now() - ${keepForMillis} * interval '1 millisecond'`,
      by: "created_at"
    })

  return {
    clean: Effect.all([
      addDays,
      noteWaitingDays,
      Effect.provideService(removeDays(keepFor), SqlClient.SqlClient, session),
      removeRecords("skipped_events", "endpoint_id", "event_id"),
      removeRecords("published_events", "id"),
      removeOld(sql, {
        table: "unconfirmed_claims",
        key: ["lease"],
        old: sql`r.lease < payments.id_at(now() - ${keepForMillis} * interval '1 millisecond')`,
        by: "lease"
      }),
      recoveries.removeOlderThan(keepForMillis),
      replays.removeOlderThan(keepForMillis)
    ]).pipe(
      Effect.asVoid,
      Effect.provideService(SqlClient.SqlClient, sql),
      orUnavailable,
      Effect.withSpan("Retention.clean")
    ),
    checkReferences: checkReferences.pipe(Effect.provideService(SqlClient.SqlClient, sql), orUnavailable)
  }
})

/** How many waiting deliveries are checked: those that have waited longest, since broken ones stay. */
const referencesLookedAt = 1000

/** How many ids a log line names. */
const idsNamed = 5

/** A waiting delivery, and which of the rows that it refers to are missing. */
interface Dangling {
  readonly id: string
  readonly delivery: boolean
  readonly event: boolean
  readonly endpoint: boolean
}

/**
 * Reports, for operators, waiting deliveries whose history, event or endpoint is missing: they can't be sent. The
 * statements that store and remove rows should prevent this, but no foreign keys enforce it.
 */
const checkReferences: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const dangling = yield* sql<Dangling>`
    SELECT id, delivery, event, endpoint FROM (
      SELECT q.id,
        (SELECT 1 FROM payments.deliveries d WHERE d.organization_id = q.organization_id
          AND d.environment = q.environment AND d.id = q.id) IS NULL AS delivery,
        (SELECT 1 FROM payments.events e WHERE e.organization_id = q.organization_id
          AND e.environment = q.environment AND e.id = q.event_id) IS NULL AS event,
        (SELECT 1 FROM payments.endpoints p WHERE p.organization_id = q.organization_id
          AND p.environment = q.environment AND p.id = q.endpoint_id) IS NULL AS endpoint
      FROM (SELECT * FROM payments.delivery_queue ORDER BY next_attempt_at LIMIT ${referencesLookedAt}) AS q
    ) AS waiting WHERE delivery OR event OR endpoint`
  if (dangling.length === 0) return
  const count = (part: keyof Omit<Dangling, "id">) => dangling.filter((one) => one[part]).length
  yield* Effect.logError(
    "Waiting deliveries lack what they refer to, and can't be sent: restore it from a backup"
  ).pipe(
    Effect.annotateLogs({
      deliveries: dangling.length,
      withoutHistory: count("delivery"),
      withoutEvent: count("event"),
      withoutEndpoint: count("endpoint"),
      ids: dangling.slice(0, idsNamed).map(({ id }) => id)
    })
  )
})
