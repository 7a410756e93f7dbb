import { SqlClient } from "@effect/sql"
import { Duration, Effect, Layer, Schedule } from "effect"

/** How often a process keeps house, unless the tasks say otherwise. */
const usualInterval = "10 minutes"

/** After how many intervals without a round another process begins one: the process that did the last one has ended. */
const patience = 1.5

/** This process, in the table of who does what. */
const processId = crypto.randomUUID()

/**
 * Runs tasks that remove expired data or look after it, at once and then every 10 minutes by default, one after another. A task
 * that fails is logged and tried again in the next round. Of all processes on one database that have the tasks, one does
 * them; once it has ended, another one begins within some two and a half intervals.
 *
 * @param name of all the tasks together; processes with the same name share them
 * @param makeTasks the tasks, by the name of what each looks after: "sessions"
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
        Effect.whenEffect(isOurs(sql, name, Duration.times(interval, patience))),
        Effect.repeat(Schedule.spaced(interval).pipe(Schedule.jittered)),
        Effect.withTracerEnabled(false),
        Effect.forkScoped
      )
    )
  )

/**
 * Whether this process does the tasks now: it did them last, or whoever did has not for so long. If the database does not
 * say, the tasks are tried: rows that one process has removed are gone for the others.
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
