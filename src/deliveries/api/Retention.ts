import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import type { ServiceUnavailable } from "../../errors/Errors.ts"
import { firstIdAt } from "../../kit/Ids.ts"
import { orUnavailable, sessionClient } from "../../storage/Database.ts"
import { addDays, noteWaitingDays, removeDays, storedBefore } from "../../storage/DayPartitions.ts"
import { dropFirstEventIndexes } from "../../storage/EventIndexes.ts"
import { makeEventReplaysRepo } from "./EventReplaysRepo.ts"
import { makeRecoveriesRepo } from "./RecoveriesRepo.ts"
import { checkReferences } from "./References.ts"

export interface RetentionOptions {
  /** How long finished deliveries, and payloads that no delivery needs, are kept (contract 9.6). */
  readonly keepFor: Duration.Duration
}

/** How many rows one statement removes: few, so that its locks and disk time are short. */
const batchSize = 500

/** How many workspaces one statement searches. */
const workspacesAtOnce = 100

/** The pause after a statement that removed something: the queue's own work has priority. */
const pause = "50 millis"

/** Removes deliveries and payloads after their retention (contract 9.6). */
export class Retention extends Context.Tag("connected-payments/deliveries/Retention")<
  Retention,
  {
    /**
     * Removes everything whose retention has ended. Deliveries with their attempts, and events, are removed a day at a
     * time, when all of that day has ended: a delivery that still waits, or is re-sent, keeps its day. Records of
     * skipped events, finished recoveries and replays, and deliveries and events from before there were days are
     * removed in small batches. Any number of processes may run it at the same time. Queued deliveries and their events
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

/** A cursor: the last workspace on a page. */
interface Place {
  readonly organizationId: string
  readonly environment: string
}

const make = Effect.fnUntraced(function* ({ keepFor }: RetentionOptions) {
  const sql = yield* SqlClient.SqlClient
  const session = yield* sessionClient
  const recoveries = yield* makeRecoveriesRepo
  const replays = yield* makeEventReplaysRepo
  const keepForMillis = Duration.toMillis(keepFor)
  const old = sql`now() - ${keepForMillis} * interval '1 millisecond'`

  const pageAfter = (place: Place) => sql<Place>`
    SELECT organization_id AS "organizationId", environment FROM payments.workspaces
    WHERE (organization_id, environment) > (${place.organizationId}::uuid, ${place.environment}::text)
    ORDER BY organization_id, environment LIMIT ${workspacesAtOnce}`

  const before = {
    deliveries: sql.literal(`payments.${storedBefore.deliveries.table}`),
    events: sql.literal(`payments.${storedBefore.events.table}`)
  }

  /**
   * Of what was stored before there were days. Walks each workspace's ids from the start, where the oldest are. This
   * uses the primary key, so that no additional index has to be maintained for every delivery.
   */
  const removeDeliveries = (workspaces: ReadonlyArray<Place>) => sql`
    WITH old AS MATERIALIZED (
      SELECT d.* FROM unnest(
        ${workspaces.map(({ organizationId }) => organizationId)}::uuid[],
        ${workspaces.map(({ environment }) => environment)}::text[]
      ) AS w (organization_id, environment) CROSS JOIN LATERAL (
        SELECT d.organization_id, d.environment, d.id FROM ${before.deliveries} d
        WHERE d.organization_id = w.organization_id AND d.environment = w.environment
          AND d.id < ${firstIdAt(Date.now() - keepForMillis)}::uuid AND d.state <> 'queued' AND d.finished_at < ${old}
        ORDER BY d.id LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
      ) d LIMIT ${batchSize}
    )
    DELETE FROM ${before.deliveries} d USING old
    WHERE d.organization_id = old.organization_id AND d.environment = old.environment AND d.id = old.id
    RETURNING 1`

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

  const removeEvents = sql`
    WITH old AS MATERIALIZED (
      SELECT e.organization_id, e.environment, e.id FROM ${before.events} e
      -- Not EXISTS, which the planner may turn into a join that reads all deliveries
      WHERE e.created_at < ${old} AND (
        SELECT 1 FROM ${before.deliveries} d
        WHERE d.organization_id = e.organization_id AND d.environment = e.environment AND d.event_id = e.id LIMIT 1
      ) IS NULL AND (
        SELECT 1 FROM payments.skipped_events s
        WHERE s.organization_id = e.organization_id AND s.environment = e.environment AND s.event_id = e.id LIMIT 1
      ) IS NULL
      ORDER BY e.created_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
    )
    DELETE FROM ${before.events} e USING old
    WHERE e.organization_id = old.organization_id AND e.environment = old.environment AND e.id = old.id
    RETURNING 1`

  /** Repeats a statement until it removes fewer rows than its limit. */
  const inBatches = (remove: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>) =>
    remove.pipe(
      Effect.tap((removed) => (removed.length > 0 ? Effect.sleep(pause) : Effect.void)),
      Effect.repeat({ while: (removed) => removed.length >= batchSize })
    )

  const cleanDeliveries = Effect.gen(function* () {
    let place: Place = { organizationId: "00000000-0000-0000-0000-000000000000", environment: "" }
    for (;;) {
      const workspaces = yield* pageAfter(place)
      yield* inBatches(Effect.suspend(() => removeDeliveries(workspaces)))
      const last = workspaces.at(-1)
      if (last === undefined || workspaces.length < workspacesAtOnce) {
        return
      }
      place = last
    }
  })

  return {
    clean: Effect.all([
      addDays,
      noteWaitingDays,
      dropFirstEventIndexes,
      Effect.provideService(removeDays(keepFor), SqlClient.SqlClient, session),
      cleanDeliveries,
      inBatches(removeSkipped),
      // After the rows that refer to them
      inBatches(removeEvents),
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
