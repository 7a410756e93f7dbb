import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Queue as Mailbox, Schedule, Stream } from "effect"

/** The channel on which processes tell each other that deliveries are due. */
const channel = "connected_payments_deliveries"

/** At most one notification per process in this time: one per event, in its transaction, would line up the commits. */
const gatherFor = "5 millis"

/**
 * Wakes the workers of all processes when deliveries were stored. Only a hint: it may be lost, and the workers look for
 * due deliveries from time to time anyway.
 */
export class WakeUp extends Context.Tag("connected-payments/deliveries/WakeUp")<
  WakeUp,
  {
    /** To be called after the commit; returns at once. */
    readonly announce: Effect.Effect<void>
    /** Waits until something was announced, here or elsewhere, since the last call. */
    readonly await: Effect.Effect<void>
  }
>() {
  static readonly layer: Layer.Layer<WakeUp, never, PgClient.PgClient | SqlClient.SqlClient> = Layer.scoped(
    WakeUp,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const pg = yield* PgClient.PgClient
      const outgoing = yield* Mailbox.sliding<void>(1)
      const incoming = yield* Mailbox.sliding<void>(1)

      yield* Mailbox.take(outgoing).pipe(
        Effect.zipRight(sql`SELECT pg_notify(${channel}, 'due')`),
        Effect.catchAll((error) => Effect.logDebug("The wake-up could not be sent; workers poll", error)),
        Effect.zipRight(Effect.sleep(gatherFor)),
        Effect.withTracerEnabled(false),
        Effect.forever,
        Effect.forkScoped
      )
      yield* pg.listen(channel).pipe(
        Stream.runForEach(() => Mailbox.offer(incoming, undefined)),
        Effect.retry(Schedule.spaced("1 second")),
        Effect.withTracerEnabled(false),
        Effect.forkScoped
      )

      return {
        // This process's own workers need no round trip
        announce: Effect.zipRight(Mailbox.offer(incoming, undefined), Mailbox.offer(outgoing, undefined)).pipe(
          Effect.asVoid
        ),
        await: Mailbox.take(incoming)
      }
    })
  )
}
