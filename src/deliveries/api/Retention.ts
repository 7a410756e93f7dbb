import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import type { ServiceUnavailable } from "../../errors/Errors.ts"
import { orUnavailable, sessionClient } from "../../storage/Database.ts"
import { addDays, noteWaitingDays, removeDays } from "../../storage/DayPartitions.ts"
import { makeEventReplaysRepo } from "./EventReplaysRepo.ts"
import { makeRecoveriesRepo } from "./RecoveriesRepo.ts"
import { checkReferences } from "./References.ts"

export interface RetentionOptions {
  /** How long finished deliveries, and payloads that no delivery needs, are kept (contract 9.6). */
  readonly keepFor: Duration.Duration
}

/** How many rows one statement removes: few, so that its locks and disk time are short. */
const batchSize = 500

/** The pause after a statement that removed something: the queue's own work has priority. */
const pause = "50 millis"

/** Removes deliveries and payloads after their retention (contract 9.6). */
export class Retention extends Context.Tag("connected-payments/deliveries/Retention")<
  Retention,
  {
    /**
     * Removes everything whose retention has ended. Deliveries with their attempts, and events, are removed a day at a
     * time, when all of that day has ended: a delivery that still waits, or is re-sent, keeps its day. Records of
     * skipped and published events, finished recoveries and replays are removed in small batches. Any number of processes may run it at the same time. Queued deliveries and their events
     * are never removed, however old they are.
     *
     * Adds the tables for the next days, too.
     */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
    /** Logs waiting deliveries that lack what they refer to: see `References.ts`. */
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
  const old = sql`now() - ${keepForMillis} * interval '1 millisecond'`

  const removeSkipped = sql`
    WITH old AS MATERIALIZED (
      SELECT organization_id, environment, endpoint_id, event_id FROM payments.skipped_events WHERE created_at < ${old}
      ORDER BY created_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
    )
    DELETE FROM payments.skipped_events s USING old
    WHERE s.organization_id = old.organization_id AND s.environment = old.environment
      AND s.endpoint_id = old.endpoint_id AND s.event_id = old.event_id
    RETURNING 1`

  const removePublished = sql`
    WITH old AS MATERIALIZED (
      SELECT organization_id, environment, id FROM payments.published_events WHERE created_at < ${old}
      ORDER BY created_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
    )
    DELETE FROM payments.published_events p USING old
    WHERE p.organization_id = old.organization_id AND p.environment = old.environment AND p.id = old.id
    RETURNING 1`

  /** Repeats a statement until it removes fewer rows than its limit. */
  const inBatches = (remove: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>) =>
    remove.pipe(
      Effect.tap((removed) => (removed.length > 0 ? Effect.sleep(pause) : Effect.void)),
      Effect.repeat({ while: (removed) => removed.length >= batchSize })
    )

  return {
    clean: Effect.all([
      addDays,
      noteWaitingDays,
      Effect.provideService(removeDays(keepFor), SqlClient.SqlClient, session),
      inBatches(removeSkipped),
      inBatches(removePublished),
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
