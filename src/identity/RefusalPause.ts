import { Duration, Effect } from "effect"

/**
 * Delays refusals that are known beforehand, so that a sender that ignores them sends less, and leaves the processor to
 * others: each by 100 ms, and longer the more of the same credential's wait already.
 */

const pauseMillis = 100

/** With each further so many that wait, a refusal waits 100 ms more. */
const waitingPerPause = 8

/** The longest delay. What sends over very many connections is bounded by their number. */
const maxPauseMillis = 1000

/** Delays an effect by how many of the same name are being delayed. */
export const makeRefusalPause = (): (<A, E, R>(
  name: string,
  refusal: Effect.Effect<A, E, R>
) => Effect.Effect<A, E, R>) => {
  /** How many wait, by name: no more in all than there are connections. */
  const waiting = new Map<string, number>()
  /** Joins those who wait; how long it has to. */
  const enter = (name: string): Duration.Duration => {
    const others = waiting.get(name) ?? 0
    waiting.set(name, others + 1)
    return Duration.millis(Math.min(maxPauseMillis, pauseMillis * (1 + Math.floor(others / waitingPerPause))))
  }
  const leave = (name: string): void => {
    const rest = (waiting.get(name) ?? 1) - 1
    if (rest > 0) waiting.set(name, rest)
    else waiting.delete(name)
  }
  return (name, refusal) =>
    Effect.zipRight(
      Effect.acquireUseRelease(
        Effect.sync(() => enter(name)),
        Effect.sleep,
        () => Effect.sync(() => leave(name))
      ),
      refusal
    )
}
