import { type Duration, Effect, Layer, Option, Schedule } from "effect"
import { Cluster } from "../storage/Cluster.ts"

/** How often a process keeps house, unless the tasks say otherwise. */
const usualInterval = "10 minutes"

/**
 * Runs tasks that remove expired data or look after it, at once and then every 10 minutes by default, one after another. A task
 * that fails is logged and tried again in the next round. Where workers run, one of those that have the tasks does them,
 * and another one once that has ended. Where none runs, or for a moment, several do: rows that one has removed are gone
 * for the others.
 *
 * @param name of all the tasks together, without a full stop
 * @param makeTasks the tasks, by the name of what each looks after: "sessions"
 * @param interval the pause between two rounds
 */
export const housekeepingLayer = <R>(
  name: string,
  makeTasks: Effect.Effect<Readonly<Record<string, Effect.Effect<unknown, unknown>>>, never, R>,
  interval: Duration.DurationInput = usualInterval
): Layer.Layer<never, never, R> =>
  Layer.scopedDiscard(
    Effect.flatMap(Effect.all([makeTasks, Effect.serviceOption(Cluster)]), ([tasks, cluster]) =>
      Effect.forEach(Object.entries(tasks), ([name, task]) =>
        Effect.catchAllCause(task, (cause) =>
          Effect.logWarning(`Housekeeping of ${name} failed; the next round tries again`, cause)
        )
      ).pipe(
        Effect.unlessEffect(isOthers(name, cluster)),
        Effect.repeat(Schedule.spaced(interval).pipe(Schedule.jittered)),
        Effect.withTracerEnabled(false),
        Effect.forkScoped
      )
    )
  )

/** If the database does not say, the tasks are tried. */
const isOthers = (name: string, cluster: Option.Option<Cluster["Type"]>) =>
  Option.match(cluster, {
    onNone: () => Effect.succeed(false),
    onSome: ({ keepHouse }) => Effect.orElseSucceed(keepHouse(name), () => false)
  })
