import { Duration } from "effect"
import { BoundedSemaphore } from "./BoundedSemaphore.ts"

/**
 * Token buckets: a bucket holds `limit` tokens, a request takes one or more, and it refills continuously within `per`.
 * Buckets are in the database, shared by all processes; this module computes what is known about one without a query.
 */
export interface RateLimitPolicy {
  readonly limit: number
  readonly per: Duration.Duration
}

/** A bucket's answer to a request. */
export interface RateLimitState {
  readonly allowed: boolean
  /** Tokens left after the request. */
  readonly tokens: number
}

const tokensPerMilli = ({ limit, per }: RateLimitPolicy): number => limit / Duration.toMillis(per)

/** Whole seconds until the bucket holds `wanted` tokens, at least 1. */
export const secondsToTokens = (tokens: number, policy: RateLimitPolicy, wanted = 1): number =>
  Math.max(1, Math.ceil((wanted - tokens) / tokensPerMilli(policy) / 1000))

/** Whole seconds until the bucket is full. */
export const secondsToFull = (tokens: number, policy: RateLimitPolicy): number =>
  Math.ceil((policy.limit - tokens) / tokensPerMilli(policy) / 1000)

/**
 * What this process knows about one bucket: the most tokens that it can hold. Other processes only take tokens and only
 * time adds them, so a request for more is refused without asking the database.
 */
export interface BucketView {
  /** The most tokens that it held, by the database's last answer and what was taken here since. */
  tokens: number
  /** When that was, by `monotonicMillis`. */
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

/** The most tokens that a bucket can hold now. */
export const tokensAtMost = (view: BucketView, policy: RateLimitPolicy, now: number): number =>
  Math.min(policy.limit, view.tokens + (now - view.at) * tokensPerMilli(policy))

/** Takes a token in this process; there must be one. */
export const spendHere = (view: BucketView, policy: RateLimitPolicy, now: number): void => {
  view.tokens = tokensAtMost(view, policy, now) - 1
  view.at = now
  view.spent += 1
}

/** Tokens still to report to the database: at most those that have not been refilled. */
export const untoldSpending = (view: BucketView, policy: RateLimitPolicy, now: number): number =>
  Math.min(view.spent, policy.limit - tokensAtMost(view, policy, now))
