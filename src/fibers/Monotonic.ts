import { Clock, Effect } from "effect"

/** Milliseconds of the fiber's monotonic clock: a step of the wall clock must not make a duration longer or shorter. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(
  Clock.currentTimeNanos,
  (nanos) => Number(nanos / 1000n) / 1000
)
