import { Clock, Effect } from "effect"

/** Milliseconds of the fiber's monotonic clock: durations must not depend on adjustments of the wall clock. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(
  Clock.currentTimeNanos,
  (nanos) => Number(nanos / 1000n) / 1000
)
