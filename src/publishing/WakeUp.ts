import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Queue as Mailbox, Option, Schedule } from "effect"
import { ownClients, SessionOptions } from "../storage/Database.ts"
import { addressOf, listenOn, settingsOf } from "../storage/Listener.ts"
import { Signal } from "./Signal.ts"

/** The channel on which processes tell each other that deliveries are due. */
const channel = "connected_payments_deliveries"

/**
 * At most one notification per process in this time: one per event, in its transaction, would serialize the commits.
 */
const gatherFor = "5 millis"

/** The wait before the next try to listen again. */
const reconnect = Schedule.exponential("50 millis").pipe(
  Schedule.jittered,
  Schedule.union(Schedule.spaced("2 seconds")),
  // Once a connection has lasted this long, its loss counts as the first again
  Schedule.resetAfter("10 seconds")
)

/**
 * Wakes the workers of all processes when deliveries were stored. Only a hint: it may be lost, but the workers also
 * poll for due deliveries from time to time.
 */
export class WakeUp extends Context.Tag("connected-payments/publishing/WakeUp")<
  WakeUp,
  {
    /**
     * Must be called after the commit; returns at once. Wakes this process's worker and those of all other processes: what
     * is due may belong to any of them.
     */
    readonly announce: Effect.Effect<void>
    /**
     * Waits until there was an announcement since the last call, here or in another process, or one may have been
     * missed while the connection was down.
     */
    readonly await: Effect.Effect<void>
  }
>() {
  static readonly layer: Layer.Layer<WakeUp, never, PgClient.PgClient | SqlClient.SqlClient> = Layer.scoped(
    WakeUp,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const pg = yield* PgClient.PgClient
      const sessions = yield* Effect.serviceOption(SessionOptions)
      const ownName = crypto.randomUUID()
      const outgoing = yield* Mailbox.sliding<void>(1)
      const incoming = new Signal()

      yield* Mailbox.take(outgoing).pipe(
        Effect.zipRight(sql`SELECT pg_notify(${channel}, ${ownName})`),
        Effect.catchAll((error) => Effect.logDebug("The wake-up could not be sent; workers poll", error)),
        Effect.zipRight(Effect.sleep(gatherFor)),
        Effect.withTracerEnabled(false),
        Effect.forever,
        Effect.forkScoped
      )
      const address = Option.match(sessions, { onNone: () => settingsOf(pg.config), onSome: addressOf })
      yield* listenOn(address, yield* ownClients, channel, {
        onListening: () => incoming.raise(),
        onNotification: (sender) => {
          if (sender !== ownName) incoming.raise()
        }
      }).pipe(
        Effect.tapError((error) => Effect.logDebug("Wake-ups can't be heard; workers poll", error)),
        Effect.retry(reconnect),
        Effect.withTracerEnabled(false),
        Effect.forkScoped
      )

      return {
        announce: Effect.suspend(() => {
          incoming.raise()
          return Effect.asVoid(Mailbox.offer(outgoing, undefined))
        }),
        await: incoming.wait()
      }
    })
  )
}
