import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { type Environment, environments } from "../../platform/kit/Environment.ts"
import { type MetricsWriter, observeMetrics } from "../../platform/telemetry/Metrics.ts"

/**
 * How many deliveries of the queue are read, the first to come due: a few milliseconds' work, however many wait. Beyond
 * them, the depth is an estimate.
 */
const usualWindow = 10_000

interface Row {
  readonly environment: Environment
  readonly due: number
  readonly scheduled: number
  /** The age of the oldest due delivery, in seconds. */
  readonly oldest: number | null
}

/**
 * The depth of the queue in each environment, and the age of its oldest due delivery. Every process queries them before
 * each export; they cover the whole installation, so those of any one process are valid. None are exported while the
 * database can't be queried: stale ones would suggest that all is well.
 *
 * Exact while fewer than `window` deliveries wait. Beyond that, PostgreSQL's own estimate of the index's size is split
 * in the proportions of those read; an environment that is not among them has an age of 0, since none of its deliveries
 * came due earlier.
 */
export const observeQueueWithin = (window: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const look = sql<Row>`
    WITH head AS MATERIALIZED (
      -- What is in flight comes due when its lease ends
      SELECT environment, GREATEST(next_attempt_at, leased_until) AS due_at
      FROM payments.delivery_queue ORDER BY next_attempt_at LIMIT ${window}
    ), size AS (
      SELECT CASE WHEN n < ${window} THEN 1
        ELSE GREATEST(1, (SELECT reltuples FROM pg_class WHERE oid = 'payments.delivery_queue_due'::regclass) / n) END AS factor
      FROM (SELECT count(*) AS n FROM head) AS counted
    )
    SELECT environment,
      (count(*) FILTER (WHERE due_at <= now()) * factor)::float8 AS due,
      (count(*) FILTER (WHERE due_at > now()) * factor)::float8 AS scheduled,
      EXTRACT(EPOCH FROM now() - min(due_at) FILTER (WHERE due_at <= now()))::float8 AS oldest
    FROM head, size GROUP BY environment, factor`
    return observeMetrics((metrics) =>
      look.pipe(
        Effect.tap((rows) => Effect.sync(() => setAll(metrics, rows))),
        Effect.onError(() => Effect.sync(() => forgetAll(metrics))),
        Effect.catchAll((error) => Effect.logDebug("The queue could not be looked at", error))
      )
    )
  })

/** The same, with a window of 10,000. */
export const observeQueue = observeQueueWithin(usualWindow)

const depth = "connected_payments.delivery.queue.depth"
const age = "connected_payments.delivery.queue.oldest_due_age"

const set = (metrics: MetricsWriter, environment: Environment, value: Omit<Row, "environment">): void => {
  metrics.set(depth, Math.round(value.due), [environment, "due"])
  metrics.set(depth, Math.round(value.scheduled), [environment, "scheduled"])
  metrics.set(age, value.oldest ?? 0, [environment])
}

const forgetAll = (metrics: MetricsWriter): void => {
  for (const environment of environments) {
    set(metrics, environment, { due: Number.NaN, scheduled: Number.NaN, oldest: Number.NaN })
  }
}

const setAll = (metrics: MetricsWriter, rows: ReadonlyArray<Row>): void => {
  for (const environment of environments) {
    const row = rows.find((row) => row.environment === environment)
    set(metrics, environment, row ?? { due: 0, scheduled: 0, oldest: null })
  }
}
