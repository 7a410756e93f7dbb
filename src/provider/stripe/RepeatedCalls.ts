import { Clock, Duration, Effect, Random } from "effect"

/**
 * Calls to the provider are made again where that is safe and may help: at most twice more, after a pause with jitter,
 * and never beyond the call's deadline.
 */

/** How often a call is made again. */
export const maxRepeats = 2

/** What is known of a call that failed. */
export interface FailedCall {
  /** It may pass if it is made again: no connection, a failure of the provider's own, too many calls, a lock. */
  readonly transient: boolean
  /** The provider's own wish, in milliseconds. */
  readonly retryAfter: number | undefined
}

/** The pause before the n-th repeat: 250 ms, then 500 ms, shortened by up to half so that callers do not meet again. */
const pauseBefore = (repeat: number, { retryAfter }: FailedCall): Effect.Effect<number> =>
  Effect.map(Random.nextRange(0.5, 1), (jitter) => Math.max(retryAfter ?? 0, 250 * 2 ** (repeat - 1) * jitter))

/**
 * Repeats a call while its failures are transient. A pause that the deadline has no room for is not begun: the failure
 * itself is a better answer than a time-out.
 *
 * @param attempt makes the call for the n-th time, from 0
 * @param deadline how long all of it may take
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
