import type { Statement } from "@effect/sql"
import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer, Option } from "effect"
import { RateLimitExceeded, type ServiceUnavailable } from "../Errors.ts"
import { orUnavailable } from "../storage/Database.ts"
import { ResponseHeaders } from "./Request.ts"

/**
 * Token buckets in the database, shared by all processes: a bucket holds `limit` tokens, a request takes one, and they
 * come back steadily within `per`.
 */
export interface RateLimitPolicy {
  readonly limit: number
  readonly per: Duration.Duration
}

/** What a bucket said of a request. */
export interface RateLimitState {
  readonly allowed: boolean
  /** Tokens left after the request. */
  readonly tokens: number
}

/**
 * The statement's part that takes a token, to be joined with the query that finds who asks: both cost one round trip.
 * `source` is a query that yields the bucket's name as `bucket`; without a row of it no token is taken.
 */
export const takeToken = (
  sql: SqlClient.SqlClient,
  source: Statement.Fragment,
  { limit, per }: RateLimitPolicy
): Statement.Fragment => {
  const perSecond = limit / Duration.toSeconds(per)
  const available = sql`LEAST(${limit}::float8,
    b.tokens + ${perSecond}::float8 * GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at)))`
  return sql`
    INSERT INTO payments.rate_limits AS b (bucket, tokens, allowed, refilled_at)
    SELECT source.bucket, ${limit - 1}::float8, true, clock_timestamp() FROM (${source}) AS source
    ON CONFLICT (bucket) DO UPDATE SET
      tokens = ${available} - CASE WHEN ${available} >= 1 THEN 1 ELSE 0 END,
      allowed = ${available} >= 1,
      refilled_at = clock_timestamp()
    RETURNING b.tokens, b.allowed`
}

/** Seconds until the bucket has a token again, at least 1. */
const secondsToToken = (state: RateLimitState, { limit, per }: RateLimitPolicy): number =>
  Math.max(1, Math.ceil(((1 - state.tokens) * Duration.toSeconds(per)) / limit))

/** Seconds until the bucket is full. */
const secondsToFull = (state: RateLimitState, { limit, per }: RateLimitPolicy): number =>
  Math.ceil(((limit - state.tokens) * Duration.toSeconds(per)) / limit)

/** Puts what a bucket said into the response's headers, and refuses the request where it held no token. */
export const enforce = (state: RateLimitState, policy: RateLimitPolicy): Effect.Effect<void, RateLimitExceeded> =>
  Effect.withFiberRuntime((fiber) => {
    const headers = Context.getOption(fiber.currentContext, ResponseHeaders)
    if (Option.isSome(headers)) {
      headers.value["ratelimit-limit"] = String(policy.limit)
      headers.value["ratelimit-remaining"] = String(Math.max(0, Math.floor(state.tokens)))
      headers.value["ratelimit-reset"] = String(secondsToFull(state, policy))
    }
    return state.allowed
      ? Effect.void
      : new RateLimitExceeded({ retryAfter: Duration.seconds(secondsToToken(state, policy)) })
  })

/** How long an untouched bucket is kept: by then every bucket is full again. */
const keepFor = "1 hour"

/** Limits on what has no credential: failed authentications and sign-in links, per client address or person. */
export class RateLimits extends Context.Tag("connected-payments/kit/RateLimits")<
  RateLimits,
  {
    /** Takes a token from the bucket, or fails with how long to wait. */
    readonly take: (
      bucket: string,
      policy: RateLimitPolicy
    ) => Effect.Effect<void, RateLimitExceeded | ServiceUnavailable>
    /** Removes buckets that are full again. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<RateLimits, never, SqlClient.SqlClient> = Layer.effect(
    RateLimits,
    Effect.map(SqlClient.SqlClient, (sql) => ({
      take: Effect.fnUntraced(function* (bucket: string, policy: RateLimitPolicy) {
        const [state] = yield* sql<RateLimitState>`${takeToken(sql, sql`SELECT ${bucket}::text AS bucket`, policy)}`
        if (state?.allowed === false) {
          return yield* new RateLimitExceeded({ retryAfter: Duration.seconds(secondsToToken(state, policy)) })
        }
      }, orUnavailable),
      clean: sql`DELETE FROM payments.rate_limits WHERE refilled_at < now() - ${keepFor}::interval`.pipe(
        Effect.asVoid,
        orUnavailable
      )
    }))
  )
}
