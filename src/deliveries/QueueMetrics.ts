import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { type MetricsWriter, observeMetrics } from "../kit/Metrics.ts"
import { type Environment, environments } from "../Settings.ts"

/**
 * How many deliveries of the queue are looked at, the first to come due: some milliseconds' work, however many wait.
 * Beyond them the depth is an estimate.
 */
const usualWindow = 10_000

interface Row {
  readonly environment: Environment
  readonly due: number
  readonly scheduled: number
  /** Of the oldest due one, in seconds. */
  readonly oldest: number | null
}

/**
 * How deep the queue is in each environment and how long its oldest due delivery has waited, looked at before each
 * export by every worker: the numbers are the whole installation's, so of several workers' any one holds.
 *
 * Exact while fewer than `window` deliveries wait. Beyond that PostgreSQL's own estimate of the index's size is split
 * as those are; an environment that is not among them has an age of 0, since none of its deliveries is older than
 * theirs.
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
        Effect.catchAll((error) => Effect.logDebug("The queue could not be looked at", error))
      )
    )
  })

/** The same with a window of 10,000. */
export const observeQueue = observeQueueWithin(usualWindow)

const setAll = (metrics: MetricsWriter, rows: ReadonlyArray<Row>): void => {
  for (const environment of environments) {
    const row = rows.find((row) => row.environment === environment)
    const depth = "connected_payments.delivery.queue.depth"
    metrics.set(depth, Math.round(row?.due ?? 0), [environment, "due"])
    metrics.set(depth, Math.round(row?.scheduled ?? 0), [environment, "scheduled"])
    metrics.set("connected_payments.delivery.queue.oldest_due_age", row?.oldest ?? 0, [environment])
  }
}
