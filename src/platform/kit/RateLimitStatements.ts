import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Duration, Effect } from "effect"
import { batchSize } from "../storage/Batches.ts"

/** Refills continuously within `per`. Buckets are in the database, shared by all processes. */
export interface RateLimitPolicy {
  readonly limit: number
  readonly per: Duration.Duration
}

export interface Taken {
  readonly tokens: number
  readonly granted: number
}

interface Taking {
  /** The number to take, or as many as the bucket holds. */
  readonly wanted: Statement.Fragment
  /** The request is refused if there are fewer than this. Default: 1. */
  readonly atLeast?: Statement.Fragment
  /** Tokens that were taken before and are reported only now. */
  readonly spent?: Statement.Fragment
  /** Tokens that were taken before, not used, and are put back; never above the limit. */
  readonly returned?: Statement.Fragment
}

/**
 * The part of a statement that takes tokens, joined with the query that finds the caller: both cost one round trip.
 * `source` is a query that yields the bucket's name as `bucket`; if it yields no row, nothing is taken.
 */
export const takeTokens = (
  sql: SqlClient.SqlClient,
  source: Statement.Fragment,
  { limit, per }: RateLimitPolicy,
  taking: Taking
): Statement.Fragment => {
  // Only constants and settings, so that each limit has its own statement text
  const number = (value: number) => sql.literal(`${value}::float8`)
  const { atLeast = number(1), returned = number(0), spent = number(0), wanted } = taking
  const available = sql`(LEAST(${number(limit)}, b.tokens + ${returned} + ${number(limit / Duration.toSeconds(per))}
    * GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - ${spent})`
  const granted = sql`CASE WHEN ${available} >= ${atLeast} THEN LEAST(${wanted}, floor(${available})) ELSE 0 END`
  return sql`
    INSERT INTO payments.rate_limits AS b (bucket, tokens, allowed, granted, refilled_at)
    SELECT source.bucket, ${number(limit)} - ${spent} - ${wanted}, true, ${wanted}, clock_timestamp()
    FROM (${source}) AS source
    ON CONFLICT (bucket) DO UPDATE SET
      tokens = ${available} - ${granted},
      allowed = ${available} >= ${atLeast},
      granted = ${granted},
      refilled_at = clock_timestamp()
    RETURNING b.tokens, b.granted`
}

/** Takes `cost` tokens from one bucket, or none if it holds fewer, and reports those spent before. */
export const takeFrom = (
  sql: SqlClient.SqlClient,
  bucket: string,
  policy: RateLimitPolicy,
  { cost, spent }: { readonly cost: number; readonly spent: number }
): Effect.Effect<ReadonlyArray<Taken>, SqlError.SqlError> => {
  const wanted = sql`${cost}::float8`
  const taking = { wanted, atLeast: wanted, spent: sql`${spent}::float8` }
  return sql<Taken>`${takeTokens(sql, sql`SELECT ${bucket}::text AS bucket`, policy, taking)}`
}

/** How long an unused bucket is kept, depending on how long it takes to fill: by then it is full again. */
const keepFor = { short: "1 hour", long: "25 hours" } as const

/** The name prefix of buckets that take more than an hour to fill, which are kept longer. */
const longPrefix = "long:"

export const nameOf = (bucket: string, { per }: RateLimitPolicy): string =>
  Duration.greaterThan(per, keepFor.short) ? `${longPrefix}${bucket}` : bucket

/**
 * Removes the buckets of the next batch that are full again. Returns the batch's last bucket as the cursor, or null
 * at the end. Age has no index: each request would have to maintain it.
 */
export const cleanAfter =
  (sql: SqlClient.SqlClient) =>
  (place: string): Effect.Effect<string | null, SqlError.SqlError> =>
    Effect.map(
      sql<{ readonly last: string | null; readonly looked: number }>`
        WITH looked AS MATERIALIZED (
          SELECT bucket FROM payments.rate_limits WHERE bucket > ${place} ORDER BY bucket LIMIT ${batchSize}
        ), old AS MATERIALIZED (
          SELECT r.bucket FROM payments.rate_limits r JOIN looked l ON l.bucket = r.bucket
          WHERE r.refilled_at < now()
            - CASE WHEN starts_with(r.bucket, ${longPrefix}) THEN ${keepFor.long} ELSE ${keepFor.short} END::interval
          FOR UPDATE OF r SKIP LOCKED
        ), removed AS (DELETE FROM payments.rate_limits r USING old WHERE r.bucket = old.bucket)
        SELECT count(*)::int AS looked, (SELECT bucket FROM looked ORDER BY bucket DESC LIMIT 1) AS last FROM looked`,
      ([page]) => (page === undefined || page.looked < batchSize ? null : page.last)
    )
