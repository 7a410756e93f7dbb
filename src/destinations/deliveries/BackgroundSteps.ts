import type { SqlError } from "@effect/sql"
import { type Duration, Effect, Layer, Option } from "effect"

/** How often a process looks for work left over from others. */
const pollInterval = "5 seconds"

/** The pause between two steps: an endpoint should not get more than 100 deliveries in this time. */
export const stepPause: Duration.DurationInput = "200 millis"

/** Work done in small steps, whose progress is in the database: any process can take the next one. */
export interface BackgroundSteps {
  /** For the log: "A recovery". */
  readonly name: string
  /** Takes a step of the work that has waited longest. Returns the pause until the next; none if nothing is left. */
  readonly step: Effect.Effect<Option.Option<Duration.DurationInput>, SqlError.SqlError>
  readonly await: Effect.Effect<void>
}

/** Takes steps in every process: at once for work started in it, and for work left over from other processes. */
export const backgroundStepsLayer = <R>(work: Effect.Effect<BackgroundSteps, never, R>): Layer.Layer<never, never, R> =>
  Layer.scopedDiscard(
    Effect.flatMap(work, ({ await: started, name, step }) =>
      step.pipe(
        Effect.catchAll((error) =>
          Effect.as(
            Effect.logWarning(`${name}'s step failed; it will be tried again`, error),
            Option.none<Duration.DurationInput>()
          )
        ),
        Effect.flatMap(
          Option.match({
            onNone: () => Effect.raceFirst(started, Effect.sleep(pollInterval)),
            onSome: (pause) => Effect.sleep(pause)
          })
        ),
        Effect.forever,
        Effect.withTracerEnabled(false),
        Effect.forkScoped
      )
    )
  )
