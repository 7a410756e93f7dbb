import { Clock, Duration, Effect, Random } from "effect"

/** The maximum number of retries of a call. */
export const maxRepeats = 2

/** The facts that decide whether a failed call is retried. */
export interface FailedCall {
  /** Whether a retry may succeed: no connection, a failure at the provider, a rate limit, or a lock. */
  readonly transient: boolean
  /** The provider's Retry-After, in milliseconds. */
  readonly retryAfter: number | undefined
}

/**
 * The pause before the n-th retry: 250 ms, then 500 ms, shortened by up to half so that callers spread out, but at
 * least the provider's Retry-After.
 */
const pauseBefore = (repeat: number, { retryAfter }: FailedCall): Effect.Effect<number> =>
  Effect.map(Random.nextRange(0.5, 1), (jitter) => Math.max(retryAfter ?? 0, 250 * 2 ** (repeat - 1) * jitter))

/**
 * Retries a call while its failures are transient: at most twice, with jittered pauses, within the deadline. If the
 * next pause would exceed the deadline, the call fails at once: its failure says more than a timeout.
 *
 * @param attempt makes the call; the first attempt is number 0
 * @param deadline the limit for all attempts and pauses together
 */
export const repeated = <A, E extends FailedCall, R>(
  attempt: (repeat: number) => Effect.Effect<A, E, R>,
  deadline: Duration.Duration
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const end = (yield* Clock.currentTimeMillis) + Duration.toMillis(deadline)
    const from = (repeat: number): Effect.Effect<A, E, R> =>
      Effect.catchAll(attempt(repeat), (failure) =>
        Effect.gen(function* () {
          const pause = yield* pauseBefore(repeat + 1, failure)
          const now = yield* Clock.currentTimeMillis
          return failure.transient && repeat < maxRepeats && now + pause < end
            ? yield* Effect.zipRight(Effect.sleep(pause), from(repeat + 1))
            : yield* Effect.fail(failure)
        })
      )
    return yield* from(0)
  })
