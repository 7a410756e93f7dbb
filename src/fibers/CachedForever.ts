import { Duration, Effect } from "effect"

/**
 * Runs an effect when it is first asked for, and keeps its answer for the life of the process, a failure too. It runs to
 * its end even if whoever asked first is interrupted, and so does a wait for it.
 *
 * `Effect.cached` would keep that interruption as the answer, and interrupt whoever asks later.
 */
export const cachedForever = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Effect.Effect<A, E>> =>
  Effect.map(Effect.cachedWithTTL(effect, Duration.infinity), Effect.uninterruptible)
