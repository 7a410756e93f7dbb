import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Effect, type Fiber, Queue as Mailbox, Option, Schedule } from "effect"
import { constTrue } from "effect/Function"
import { service } from "../../platform/kit/Service.ts"
import { ownClients, SessionOptions } from "../../platform/storage/Database.ts"
import { addressOf, listenOn, settingsOf } from "../../platform/storage/Listener.ts"
import { schemaOf } from "../../platform/storage/Schema.ts"

/**
 * Tells one waiting fiber that there is something to do. If none is waiting, the signal is remembered, but only once.
 * The fiber that resumes clears it: one that was interrupted instead leaves it to the next.
 */
export class Signal {
  #raised = false
  #resume: (() => void) | null = null
  #waiter: Fiber.RuntimeFiber<unknown, unknown> | null = null
  #timer: NodeJS.Timeout | undefined

  get isAwaited(): boolean {
    return this.#resume !== null && this.#waiter?.unsafePoll() === null
  }

  /** Raises the signal. Can be called from anywhere; returns at once. */
  raise(): void {
    this.#raised = true
    const resume = this.#resume
    if (resume === null) return
    this.#resume = null
    clearTimeout(this.#timer)
    resume()
  }

  reset(): void {
    this.#raised = false
  }

  /** Waits until the signal has been raised since the last wait, or until `millis` have passed. */
  wait(millis?: number): Effect.Effect<void> {
    return Effect.withFiberRuntime<void>((fiber) => {
      if (this.#raised) return this.#noted
      return Effect.zipRight(this.#suspended(fiber, millis), this.#noted)
    })
  }

  readonly #noted = Effect.sync(() => {
    this.#raised = false
  })

  #suspended(fiber: Fiber.RuntimeFiber<unknown, unknown>, millis: number | undefined): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      this.#waiter = fiber
      this.#resume = () => resume(Effect.void)
      // A previous waiter was interrupted
      clearTimeout(this.#timer)
      this.#timer = millis === undefined ? undefined : setTimeout(this.#onTime, millis).unref()
    })
  }

  readonly #onTime = (): void => this.raise()
}

/** The channel on which processes with the same schema notify each other of due deliveries. */
const channelOf = (sql: SqlClient.SqlClient): string => `connected_payments_${schemaOf(sql)}`

/**
 * At most one notification per process in this interval. One per event, in its transaction, would serialize the
 * commits.
 */
const gatherFor = "5 millis"

const reconnect = Schedule.exponential("50 millis").pipe(
  Schedule.jittered,
  Schedule.union(Schedule.spaced("2 seconds")),
  // The backoff starts over after a connection that lasted this long
  Schedule.resetAfter("10 seconds")
)

/**
 * Wakes the workers of all processes when deliveries were stored. Only a hint, which may be lost: workers also poll for
 * due deliveries.
 */
export class WakeUp extends service<WakeUp>()(
  "connected-payments/engine/WakeUp",
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const channel = channelOf(sql)
    const pg = yield* PgClient.PgClient
    const sessions = yield* Effect.serviceOption(SessionOptions)
    const ownName = crypto.randomUUID()
    const outgoing = yield* Mailbox.sliding<void>(1)
    const incoming = new Signal()
    let isTakenHere: () => boolean = constTrue

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
      /**
       * Must be called after the commit; returns at once. If this process's own worker is waiting and has room, only it is
       * woken; otherwise the other processes are notified, too.
       */
      announce: Effect.suspend(() => {
        const isTaken = incoming.isAwaited && isTakenHere()
        incoming.raise()
        return isTaken ? Effect.void : Effect.asVoid(Mailbox.offer(outgoing, undefined))
      }),
      /**
       * Waits until an announcement since the last call, in any process, or until one may have been missed while the
       * connection was down. `hasRoom` says whether the worker that waits can take what is announced: if not, other
       * processes are notified as well.
       */
      await: (hasRoom: () => boolean = constTrue): Effect.Effect<void> =>
        Effect.suspend(() => {
          isTakenHere = hasRoom
          return incoming.wait()
        })
    }
  })
) {}
