import { Duration, Effect } from "effect"

/**
 * Delays refusals that are known in advance, so that a sender that ignores them sends less and leaves the CPU to
 * others: each by 100 ms, and longer the more refusals of the same credential are waiting.
 */

const pauseMillis = 100

/** Each further batch of this many waiting refusals adds 100 ms to a refusal's delay. */
const waitingPerPause = 8

/** The longest delay. A sender with very many connections is bounded by their number. */
const maxPauseMillis = 1000

/** Delays an effect, the longer the more of the same name are waiting. */
export const makeRefusalPause = (): (<A, E, R>(
  name: string,
  refusal: Effect.Effect<A, E, R>
) => Effect.Effect<A, E, R>) => {
  /** The number of waiting refusals by name: in total at most the number of connections. */
  const waiting = new Map<string, number>()
  /** Counts a waiting refusal and returns its delay. */
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
