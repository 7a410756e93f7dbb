import { Clock, Context, Duration, Effect, Exit, type Fiber } from "effect"

/**
 * Runs an effect on first use, and caches its result for the life of the process, even a failure. Uninterruptible: the
 * effect and any wait for it run to the end even if the first caller is interrupted.
 *
 * `Effect.cached` would cache that interruption as the result, and interrupt later callers.
 */
export const cachedForever = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Effect.Effect<A, E>> =>
  Effect.map(Effect.cachedWithTTL(effect, Duration.infinity), Effect.uninterruptible)

/**
 * Continues in the event loop's next turn, after pending I/O. `Effect.yieldNow` only lets fibers run that are already
 * runnable.
 */
export const turnOfEventLoop: Effect.Effect<void> = Effect.async((resume) => {
  setImmediate(() => resume(Effect.void))
})

const isValue = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Effect.Effect<A, E, R> & Exit.Success<A, E> =>
  Exit.isExit(effect) && Exit.isSuccess(effect)

/**
 * Like `Effect.flatMap`, but if the effect is already a value, calls `next` at once, without a step of the runtime. For
 * code that runs thousands of times a second and mostly waits for nothing: there a step costs more than the function.
 *
 * Only for use inside an effect that is being run, as in `Effect.suspend`: an exception of `next` is a defect there.
 */
export const flatMapSync = <A, E, R, B, E2, R2>(
  effect: Effect.Effect<A, E, R>,
  next: (value: A) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E | E2, R | R2> => (isValue(effect) ? next(effect.value) : Effect.flatMap(effect, next))

/** The time by a fiber's own clock, in Unix milliseconds, without a step of the runtime. */
export const millisNow = ({ currentDefaultServices }: Fiber.RuntimeFiber<unknown, unknown>): number =>
  Context.get(currentDefaultServices, Clock.Clock).unsafeCurrentTimeMillis()

/** Milliseconds of the fiber's monotonic clock: durations must not depend on adjustments of the wall clock. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(
  Clock.currentTimeNanos,
  (nanos) => Number(nanos / 1000n) / 1000
)
