import { Duration, Effect, Option, Schedule } from "effect"
import type { Attempts } from "./Attempts.ts"
import type { Held } from "./Held.ts"
import type { Recording } from "./Recording.ts"

/**
 * Ends a worker's attempts once nothing is claimed any more: what has not begun is given back; what is in flight may
 * end within the time-out and is recorded. What is left after that comes due again when its lease runs out.
 */
export const drain = (
  attempts: Attempts,
  held: Held,
  recording: Recording,
  timeout: Duration.Duration
): Effect.Effect<void> =>
  Effect.suspend(() => held.giveBack(attempts.takeWaiting(), Duration.zero)).pipe(
    Effect.zipRight(Effect.suspend(() => Effect.logInfo(`Shutdown: no more attempts begin; in flight: ${held.count}`))),
    Effect.zipRight(waitUntil(() => held.count === 0)),
    // A finalizer can't be interrupted, and neither could the wait in it: the time-out would have no effect
    Effect.interruptible,
    Effect.timeoutOption(timeout),
    Effect.flatMap(
      Option.match({
        onNone: () => Effect.logWarning(`${held.count} attempts were in flight at shutdown; their leases will end`),
        onSome: () => Effect.logInfo("Shutdown: every attempt has ended and is recorded")
      })
    ),
    Effect.zipRight(Effect.sync(() => recording.close()))
  )

const waitUntil = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (holds: boolean) => holds, schedule: Schedule.spaced("20 millis") })
  )
