import { Clock, Duration, Effect, Random } from "effect"

/** The most repeats of a call. */
export const maxRepeats = 2

/** What decides whether a failed call is repeated. */
export interface FailedCall {
  /** Whether a repeat may succeed: no connection, a failure at the provider, too many calls, a lock. */
  readonly transient: boolean
  /** The pause that the provider asks for, in milliseconds. */
  readonly retryAfter: number | undefined
}

/** The pause before the n-th repeat: 250 ms, then 500 ms, shortened by up to half so that callers spread out. */
const pauseBefore = (repeat: number, { retryAfter }: FailedCall): Effect.Effect<number> =>
  Effect.map(Random.nextRange(0.5, 1), (jitter) => Math.max(retryAfter ?? 0, 250 * 2 ** (repeat - 1) * jitter))

/**
 * Repeats a call as long as its failures are transient: at most twice, with jittered pauses, within the deadline. If
 * the next pause would exceed the deadline, the call fails at once: its failure says more than a time-out.
 *
 * @param attempt makes the call; the first attempt is number 0
 * @param deadline the bound of all attempts and pauses together
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
