import { SqlClient, type SqlError, type Statement } from "@effect/sql"
import { Context, Data, Duration, Effect, Option } from "effect"
import { RateLimitExceeded } from "../errors/Errors.ts"
import { batchSize } from "../storage/Batches.ts"
import { orUnavailable } from "../storage/Database.ts"
import { BoundedMap, BoundedSemaphore, monotonicMillis } from "./Concurrency.ts"
import { ResponseHeaders } from "./Request.ts"
import { service } from "./Service.ts"

/** Refills continuously within `per`. Buckets are in the database, shared by all processes. */
export interface RateLimitPolicy {
  readonly limit: number
  readonly per: Duration.Duration
}

export interface Taken {
  readonly tokens: number
  readonly granted: number
}

interface TokenRequest {
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
  taking: TokenRequest
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
const takeFrom = (
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

const nameOf = (bucket: string, { per }: RateLimitPolicy): string =>
  Duration.greaterThan(per, keepFor.short) ? `${longPrefix}${bucket}` : bucket

/**
 * Removes the buckets of the next batch that are full again. Returns the batch's last bucket as the cursor, or null
 * at the end. Age has no index: each request would have to maintain it.
 */
const cleanAfter =
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

export interface RateLimitState {
  readonly allowed: boolean
  readonly tokens: number
}

const tokensPerMilli = ({ limit, per }: RateLimitPolicy): number => limit / Duration.toMillis(per)

/** Whole seconds until the bucket holds `wanted` tokens, at least 1. */
export const secondsToTokens = (tokens: number, policy: RateLimitPolicy, wanted = 1): number =>
  Math.max(1, Math.ceil((wanted - tokens) / tokensPerMilli(policy) / 1000))

export const secondsToFull = (tokens: number, policy: RateLimitPolicy): number =>
  Math.ceil((policy.limit - tokens) / tokensPerMilli(policy) / 1000)

/**
 * This process's view of a bucket: the most tokens that it can hold. Other processes only take tokens and only time
 * adds them, so a request for more is refused without asking the database.
 */
export interface BucketView {
  /** The most tokens that it held, by the database's last answer, minus those taken here since. */
  tokens: number
  /** When it held that many, by `monotonicMillis`. */
  at: number
  /** Tokens taken here and not yet reported to the database. */
  spent: number
  /** Lets one request of this process at a time ask the database about the bucket. */
  readonly line: BoundedSemaphore
}

/** The view of an unknown bucket: it may be full. */
export const unknownBucket = ({ limit }: RateLimitPolicy, now: number): BucketView => ({
  tokens: limit,
  at: now,
  spent: 0,
  line: new BoundedSemaphore(1)
})

export const tokensAtMost = (view: BucketView, policy: RateLimitPolicy, now: number): number =>
  Math.min(policy.limit, view.tokens + (now - view.at) * tokensPerMilli(policy))

/** Takes a token in this process; there must be one. */
export const spendHere = (view: BucketView, policy: RateLimitPolicy, now: number): void => {
  view.tokens = tokensAtMost(view, policy, now) - 1
  view.at = now
  view.spent += 1
}

/** Tokens still to report to the database: at most those that have not been refilled. */
export const unreportedSpending = (view: BucketView, policy: RateLimitPolicy, now: number): number =>
  Math.min(view.spent, policy.limit - tokensAtMost(view, policy, now))

export type RateLimitScope = "credential" | "organization" | "address"

const refusals: Readonly<Record<RateLimitScope, (limit: number) => string>> = {
  credential: (limit) => `This credential may send ${limit} requests per minute`,
  organization: (limit) => `All keys and sessions of this organization together may send ${limit} requests per minute`,
  address: (limit) =>
    `Your network address may fail to authenticate, or ask this without a credential, ${limit} times per minute`
}

export const rateLimitExceeded = (
  scope: RateLimitScope,
  { limit }: RateLimitPolicy,
  retryAfter: Duration.Duration
): RateLimitExceeded =>
  new RateLimitExceeded({ message: `${refusals[scope](limit)}; wait as long as Retry-After says.`, retryAfter })

export interface ScopedState {
  readonly scope: RateLimitScope
  readonly policy: RateLimitPolicy
  readonly state: RateLimitState
}

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

/** The maximum number of buckets that a process caches; for others it asks the database. */
const maxViews = 10_000

/** A bucket holds fewer tokens than a request asks for; `retryAfter` says when it has as many. */
export class BucketEmpty extends Data.TaggedError("BucketEmpty")<{ readonly retryAfter: Duration.Duration }> {}

const bucketEmpty = (view: BucketView, policy: RateLimitPolicy, now: number, cost: number): BucketEmpty =>
  new BucketEmpty({ retryAfter: Duration.seconds(secondsToTokens(tokensAtMost(view, policy, now), policy, cost)) })

const make = Effect.map(SqlClient.SqlClient, (sql) => {
  const views = new BoundedMap<BucketView>(maxViews)

  /** One request at a time per bucket, unless the previous one found that it is empty. */
  const ask = Effect.fnUntraced(function* (name: string, view: BucketView, policy: RateLimitPolicy, cost: number) {
    const now = yield* monotonicMillis
    if (tokensAtMost(view, policy, now) < cost) {
      return yield* bucketEmpty(view, policy, now, cost)
    }
    const spent = unreportedSpending(view, policy, now)
    view.spent = 0
    const [taken = yield* Effect.dieMessage("INSERT … RETURNING answered no row")] = yield* takeFrom(
      sql,
      name,
      policy,
      { cost, spent }
    )
    view.tokens = taken.tokens
    view.at = now
    if (taken.granted < cost) {
      return yield* bucketEmpty(view, policy, now, cost)
    }
  })

  /** Takes tokens, or fails with the time to wait; without the database if the bucket can't hold that many. */
  const take = Effect.fnUntraced(function* (bucket: string, policy: RateLimitPolicy, cost = 1) {
    const name = nameOf(bucket, policy)
    const now = yield* monotonicMillis
    const view = views.getOrSet(name, () => unknownBucket(policy, now))
    if (tokensAtMost(view, policy, now) < cost) {
      return yield* bucketEmpty(view, policy, now, cost)
    }
    yield* view.line.turn(ask(name, view, policy, cost))
  }, orUnavailable)

  /** Takes a token without the database: the next `take` reports it. A bucket's first request is a `take`. */
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

  const clean = Effect.iterate("" as string | null, {
    while: (place): place is string => place !== null,
    body: cleanAfter(sql)
  }).pipe(Effect.asVoid, orUnavailable)

  return { take, takeHere, clean }
})

/** Limits on requests without a credential, or that count something other than requests. */
export class RateLimits extends service<RateLimits>()("connected-payments/kit/RateLimits", make) {}
