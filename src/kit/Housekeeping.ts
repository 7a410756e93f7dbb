import { Effect, Layer, Schedule } from "effect"

/** How often expired data is removed. */
const interval = "10 minutes"

/**
 * Runs tasks that remove expired data, at once and then every 10 minutes, one after another. A task that fails is
 * logged and tried again in the next round. Every process may run them: rows that one has removed are gone for the
 * others.
 *
 * @param makeTasks the tasks, by the name of what each removes: "sessions"
 */
export const housekeepingLayer = <R>(
  makeTasks: Effect.Effect<Readonly<Record<string, Effect.Effect<unknown, unknown>>>, never, R>
): Layer.Layer<never, never, R> =>
  Layer.scopedDiscard(
    Effect.flatMap(makeTasks, (tasks) =>
      Effect.forEach(Object.entries(tasks), ([name, task]) =>
        Effect.catchAllCause(task, (cause) =>
          Effect.logWarning(`Old ${name} were not removed; the next round will`, cause)
        )
      ).pipe(
        Effect.repeat(Schedule.spaced(interval).pipe(Schedule.jittered)),
        Effect.withTracerEnabled(false),
        Effect.forkScoped
      )
    )
  )
