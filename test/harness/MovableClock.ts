import { Clock, Duration, Effect } from "effect"

/** The real clock, which can be set forward: what sleeps meanwhile wakes no sooner. */
export interface MovableClock extends Clock.Clock {
  readonly forward: (time: Duration.DurationInput) => void
}

export const makeMovableClock = (): MovableClock => {
  const real = Clock.make()
  let ahead = 0
  const millis = () => real.unsafeCurrentTimeMillis() + ahead
  const nanos = () => real.unsafeCurrentTimeNanos() + BigInt(Math.round(ahead * 1e6))
  return {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: millis,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration) => real.sleep(duration),
    forward: (time) => {
      ahead += Duration.toMillis(time)
    }
  }
}
