import { Duration, Effect } from "effect"

/**
 * Runs an effect on first use, and caches its result for the life of the process, even a failure. Uninterruptible: the
 * effect and any wait for it run to the end even if the first caller is interrupted.
 *
 * `Effect.cached` would cache that interruption as the result, and interrupt later callers.
 */
export const cachedForever = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Effect.Effect<A, E>> =>
  Effect.map(Effect.cachedWithTTL(effect, Duration.infinity), Effect.uninterruptible)
