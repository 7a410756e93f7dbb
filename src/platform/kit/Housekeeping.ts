import { SqlClient } from "@effect/sql"
import { Duration, Effect, Layer, Schedule } from "effect"

const usualInterval = "10 minutes"

/** After this many intervals without a round, another process takes over: the one that ran the last round has ended. */
const takeoverFactor = 1.5

/** This process's id in `payments.housekeeping`. */
const processId = crypto.randomUUID()

/**
 * Runs tasks that remove or maintain old data, one after another, at once and then every 10 minutes by default. A task
 * that fails is logged and retried in the next round. Of all processes on one database that have the tasks, one runs
 * them; once it has ended, another takes over within about two and a half intervals.
 *
 * @param name the name of the whole group of tasks; processes with the same name share them
 * @param makeTasks the tasks, by the name of the rows that each looks after: "sessions"
 * @param interval the pause between two rounds
 */
export const housekeepingLayer = <R>(
  name: string,
  makeTasks: Effect.Effect<Readonly<Record<string, Effect.Effect<unknown, unknown>>>, never, R>,
  interval: Duration.DurationInput = usualInterval
): Layer.Layer<never, never, R | SqlClient.SqlClient> =>
  Layer.scopedDiscard(
    Effect.flatMap(Effect.all([makeTasks, SqlClient.SqlClient]), ([tasks, sql]) =>
      Effect.forEach(Object.entries(tasks), ([name, task]) =>
        Effect.catchAllCause(task, (cause) =>
          Effect.logWarning(`Housekeeping of ${name} failed; the next round tries again`, cause)
        )
      ).pipe(
        Effect.whenEffect(isOurs(sql, name, Duration.times(interval, takeoverFactor))),
        Effect.repeat(Schedule.spaced(interval).pipe(Schedule.jittered)),
        Effect.withTracerEnabled(false),
        Effect.forkScoped
      )
    )
  )

/**
 * Whether this process runs the tasks now: it ran them last, or the process that did has been silent for this long. If
 * the query fails, the tasks run anyway: rows that one process has removed are gone for the others.
 */
const isOurs = (sql: SqlClient.SqlClient, name: string, silence: Duration.Duration) =>
  sql`
    INSERT INTO payments.housekeeping AS h (name, process) VALUES (${name}, ${processId})
    ON CONFLICT (name) DO UPDATE SET process = EXCLUDED.process, begun_at = now()
    WHERE h.process = EXCLUDED.process
      OR h.begun_at <= now() - ${Duration.toMillis(silence)} * interval '1 millisecond'
    RETURNING 1`.pipe(
    Effect.map((rows) => rows.length > 0),
    Effect.orElseSucceed(() => true)
  )
