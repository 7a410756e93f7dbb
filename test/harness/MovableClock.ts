import { Clock, Duration, Effect } from "effect"

/** The real clock, which can be set forward and held: what sleeps meanwhile wakes no sooner and no later. */
export interface MovableClock extends Clock.Clock {
  readonly forward: (time: Duration.DurationInput) => void
  /** Holds the clock, or lets it go on from the real time. */
  readonly hold: (held: boolean) => void
}

export const makeMovableClock = (): MovableClock => {
  const real = Clock.make()
  let ahead = 0
  let heldAt: { readonly millis: number; readonly nanos: bigint } | undefined
  const millis = () => (heldAt?.millis ?? real.unsafeCurrentTimeMillis()) + ahead
  const nanos = () => (heldAt?.nanos ?? real.unsafeCurrentTimeNanos()) + BigInt(Math.round(ahead * 1e6))
  return {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: millis,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration) => real.sleep(duration),
    hold: (held) => {
      heldAt = held ? { millis: real.unsafeCurrentTimeMillis(), nanos: real.unsafeCurrentTimeNanos() } : undefined
    },
    forward: (time) => {
      ahead += Duration.toMillis(time)
    }
  }
}
