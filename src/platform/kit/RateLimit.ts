import type { Statement } from "@effect/sql"
import { SqlClient } from "@effect/sql"
import { Context, Data, Duration, Effect, Layer, Option } from "effect"
import { RateLimitExceeded, type ServiceUnavailable } from "../errors/Errors.ts"
import { monotonicMillis } from "../fibers/Monotonic.ts"
import { batchSize } from "../storage/Batches.ts"
import { orUnavailable } from "../storage/Database.ts"
import { BoundedMap } from "./BoundedMap.ts"
import { ResponseHeaders } from "./Request.ts"
import {
  type BucketView,
  type RateLimitPolicy,
  type RateLimitState,
  secondsToFull,
  secondsToTokens,
  spendHere,
  tokensAtMost,
  unknownBucket,
  untoldSpending
} from "./TokenBucket.ts"

/** The result of taking tokens from a bucket in the database. */
export interface Taken {
  /** Tokens left after the request. */
  readonly tokens: number
  /** Tokens that were taken; 0 if the request is refused. */
  readonly granted: number
}

/** How many tokens a request takes. Default: 1. */
export interface Taking {
  /** The number to take, or as many as the bucket holds: a parameter of the statement, or a constant. */
  readonly wanted?: Statement.Fragment
  /** The request is refused if there are fewer than this. */
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
  taking: Taking = {}
): Statement.Fragment => {
  // Only constants and settings, so that each limit has its own statement text
  const number = (value: number) => sql.literal(`${value}::float8`)
  const one = number(1)
  const { atLeast = one, returned = number(0), spent = number(0), wanted = one } = taking
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

/** The owner of a limit's bucket, for the message and the header `RateLimit-Scope`. */
export type RateLimitScope = "credential" | "organization" | "address"

const refusals: Readonly<Record<RateLimitScope, (limit: number) => string>> = {
  credential: (limit) => `This credential may send ${limit} requests per minute`,
  organization: (limit) => `All keys and sessions of this organization together may send ${limit} requests per minute`,
  address: (limit) =>
    `Your network address may fail to authenticate, or ask this without a credential, ${limit} times per minute`
}

/** The error if a bucket has no token for a request. */
export const rateLimitExceeded = (
  scope: RateLimitScope,
  { limit }: RateLimitPolicy,
  retryAfter: Duration.Duration
): RateLimitExceeded =>
  new RateLimitExceeded({ message: `${refusals[scope](limit)}; wait as long as Retry-After says.`, retryAfter })

/** The state of one bucket of a credential, and its limit. */
export interface ScopedState {
  readonly scope: RateLimitScope
  readonly policy: RateLimitPolicy
  readonly state: RateLimitState
}

/** Puts a bucket's state into the response's headers. */
const tell = ({ policy, scope, state }: ScopedState): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    const headers = Context.getOption(fiber.currentContext, ResponseHeaders)
    if (Option.isSome(headers)) {
      headers.value["ratelimit-limit"] = String(policy.limit)
      headers.value["ratelimit-remaining"] = String(Math.max(0, Math.floor(state.tokens)))
      headers.value["ratelimit-reset"] = String(secondsToFull(state.tokens, policy))
      headers.value["ratelimit-scope"] = scope
    }
    return Effect.void
  })

/** Refuses a request that the bucket had no token for; the response's headers show its state. */
export const refuseBy = (limit: ScopedState): Effect.Effect<never, RateLimitExceeded> => {
  const { policy, scope, state } = limit
  const retryAfter = Duration.seconds(secondsToTokens(state.tokens, policy))
  return Effect.zipRight(tell(limit), rateLimitExceeded(scope, policy, retryAfter))
}

/** Puts a bucket's state into the response's headers, and refuses the request if it had no token. */
export const enforce = (limit: ScopedState): Effect.Effect<void, RateLimitExceeded> =>
  limit.state.allowed ? tell(limit) : refuseBy(limit)

/** How long an unused bucket is kept, depending on how long it takes to fill: by then it is full again. */
const keepFor = { short: "1 hour", long: "25 hours" } as const

/** The name prefix of buckets that take more than an hour to fill, which are kept longer. */
const longPrefix = "long:"

/** The maximum number of buckets that a process caches; for others it asks the database. */
const maxViews = 10_000

/** A bucket holds fewer tokens than a request asks for; `retryAfter` says when it has as many. */
export class BucketEmpty extends Data.TaggedError("BucketEmpty")<{ readonly retryAfter: Duration.Duration }> {}

const bucketEmpty = (view: BucketView, policy: RateLimitPolicy, now: number, cost: number): BucketEmpty =>
  new BucketEmpty({ retryAfter: Duration.seconds(secondsToTokens(tokensAtMost(view, policy, now), policy, cost)) })

const make = Effect.map(SqlClient.SqlClient, (sql): RateLimits["Type"] => {
  const views = new BoundedMap<BucketView>(maxViews)

  const nameOf = (bucket: string, { per }: RateLimitPolicy) =>
    Duration.greaterThan(per, keepFor.short) ? `${longPrefix}${bucket}` : bucket

  const viewOf = (name: string, policy: RateLimitPolicy, now: number): BucketView => {
    const known = views.get(name)
    if (known !== undefined) {
      return known
    }
    const made = unknownBucket(policy, now)
    views.set(name, made)
    return made
  }

  /**
   * Asks the database, one request at a time per bucket, unless the previous one has just found that the bucket is
   * empty.
   */
  const ask = Effect.fnUntraced(function* (name: string, view: BucketView, policy: RateLimitPolicy, cost: number) {
    const now = yield* monotonicMillis
    if (tokensAtMost(view, policy, now) < cost) {
      return yield* bucketEmpty(view, policy, now, cost)
    }
    const spent = untoldSpending(view, policy, now)
    view.spent = 0
    const parameter = (value: number) => sql`${value}::float8`
    const [taken] = yield* sql<Taken>`${takeTokens(sql, sql`SELECT ${name}::text AS bucket`, policy, {
      wanted: parameter(cost),
      atLeast: parameter(cost),
      spent: parameter(spent)
    })}`
    if (taken === undefined) {
      return yield* Effect.dieMessage("INSERT … RETURNING answered no row")
    }
    view.tokens = taken.tokens
    view.at = now
    if (taken.granted < cost) {
      return yield* bucketEmpty(view, policy, now, cost)
    }
  })

  const take = Effect.fnUntraced(function* (bucket: string, policy: RateLimitPolicy, cost = 1) {
    const name = nameOf(bucket, policy)
    const now = yield* monotonicMillis
    const view = viewOf(name, policy, now)
    if (tokensAtMost(view, policy, now) < cost) {
      return yield* bucketEmpty(view, policy, now, cost)
    }
    yield* view.line.turn(ask(name, view, policy, cost))
  }, orUnavailable)

  const takeHere = Effect.fnUntraced(function* (bucket: string, policy: RateLimitPolicy) {
    const view = views.get(nameOf(bucket, policy))
    if (view === undefined) {
      return yield* take(bucket, policy)
    }
    const now = yield* monotonicMillis
    if (tokensAtMost(view, policy, now) < 1) {
      return yield* bucketEmpty(view, policy, now, 1)
    }
    spendHere(view, policy, now)
  })

  /**
   * Removes the buckets of the next batch that are full again. Returns the batch's last bucket as the cursor, or null
   * at the end. Age has no index: each request would have to maintain it.
   */
  const cleanAfter = (place: string) =>
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

  const clean = Effect.iterate("" as string | null, {
    while: (place): place is string => place !== null,
    body: cleanAfter
  }).pipe(Effect.asVoid, orUnavailable)

  return { take, takeHere, clean }
})

/** Limits on requests without a credential, or that count something other than requests. */
export class RateLimits extends Context.Tag("connected-payments/kit/RateLimits")<
  RateLimits,
  {
    /**
     * Takes tokens from the bucket, one by default, or fails with how long to wait. If this process knows that the
     * bucket can't hold that many, it refuses without asking the database.
     */
    readonly take: (
      bucket: string,
      policy: RateLimitPolicy,
      cost?: number
    ) => Effect.Effect<void, BucketEmpty | ServiceUnavailable>
    /**
     * Takes a token in this process, and reports it to the database with the next `take`: for frequent requests that
     * cost nothing else. A bucket's first request is a `take`.
     */
    readonly takeHere: (
      bucket: string,
      policy: RateLimitPolicy
    ) => Effect.Effect<void, BucketEmpty | ServiceUnavailable>
    /** Removes buckets that are full again. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<RateLimits, never, SqlClient.SqlClient> = Layer.effect(RateLimits, make)
}
