import { Duration, Effect, FiberSet, Queue, Ref, Schedule, type Scope } from "effect"
import { Agent, request } from "undici"
import type { EmulatorError } from "./EmulatorError.ts"
import type { Delivery, Event } from "./Records.ts"
import { unixSeconds } from "./Service.ts"
import { signatureHeader } from "./Signature.ts"
import type { PendingDelivery, Store } from "./Store.ts"

/** Sends the notifications of connected accounts to the platform. */
export interface Notifier {
  /** Names the target; notifications wait until one is named. */
  readonly setTarget: (url: string) => Effect.Effect<void, EmulatorError>
  /** The attempts made so far for an event whose notification is pending; undefined where this process made none. */
  readonly attemptsOf: (event: string) => number | undefined
}

/** The scope of what belongs to the emulator itself and to no account. */
const ownScope = "emulator"

const attemptTimeout = Duration.seconds(10)

/** Attempts under way at once. They begin in the order of their events. */
const concurrency = 32

/** From 200 ms, doubling, to 5 s, jittered; without end. */
const backoff = Schedule.exponential("200 millis").pipe(
  Schedule.jittered,
  Schedule.modifyDelay((_, delay) => Duration.min(delay, Duration.seconds(5)))
)

interface Outcome {
  readonly status: number | null
  readonly error: string | null
}

const reasonOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return "network_error"
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.name
}

/** One request; its answer's body is read and thrown away. Whatever happens to it is an outcome, not a failure. */
const post = (agent: Agent, url: string, body: string, signature: string): Effect.Effect<Outcome> =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await request(url, {
        body,
        dispatcher: agent,
        headers: {
          "content-type": "application/json; charset=utf-8",
          "stripe-signature": signature,
          "user-agent": "Stripe/1.0 (+connected-payments local provider emulator)"
        },
        method: "POST",
        signal
      })
      await response.body.dump()
      return response.statusCode
    },
    catch: reasonOf
  }).pipe(
    Effect.timeoutFail({ duration: attemptTimeout, onTimeout: () => "timeout" }),
    Effect.match({
      onSuccess: (status): Outcome => ({ status, error: null }),
      onFailure: (error): Outcome => ({ status: null, error })
    })
  )

const isSuccess = ({ status }: Outcome): boolean => status !== null && status >= 200 && status < 300

const advance = (delivery: Delivery, attempts: number, { error, status }: Outcome): Delivery => ({
  event: delivery.event,
  state: isSuccess({ error, status }) ? "delivered" : "pending",
  attempts,
  lastStatus: status,
  lastError: error
})

/**
 * Records an attempt. While attempts fail in the same way nothing is written, so that an unreachable target does not
 * fill the journal; the number of attempts is written with the next different outcome.
 */
const record = (store: Store, { event, scope }: PendingDelivery, attempts: number, outcome: Outcome) =>
  store.transact((transaction) =>
    Effect.sync(() => {
      const objects = transaction.in(scope)
      const delivery = objects.get("delivery", event)
      if (delivery === undefined) return
      const next = advance(delivery, attempts, outcome)
      const repeated = delivery.lastStatus === next.lastStatus && delivery.lastError === next.lastError
      if (next.state === "delivered" || !repeated) objects.put("delivery", event, next)
    })
  )

/** The event and how often it was sent before; undefined where it needs no notification any more. */
const load = (store: Store, { event: id, scope }: PendingDelivery): Effect.Effect<Loaded | undefined, EmulatorError> =>
  store.transact((transaction) =>
    Effect.sync(() => {
      const objects = transaction.in(scope)
      const event = objects.get("event", id)
      const delivery = objects.get("delivery", id)
      return event === undefined || delivery?.state !== "pending" ? undefined : { event, attempts: delivery.attempts }
    })
  )

interface Loaded {
  readonly event: Event
  readonly attempts: number
}

const storedTarget = (store: Store): Effect.Effect<string | undefined, EmulatorError> =>
  store.transact((transaction) => Effect.sync(() => transaction.in(ownScope).get("webhook", "target")?.url))

/**
 * Starts sending: each event of the store's outbox, again and again until the target answers 2xx. The target is
 * remembered, so that what was pending goes on after a restart.
 *
 * @param secret signs the notifications
 */
export const makeNotifier = (store: Store, secret: string): Effect.Effect<Notifier, EmulatorError, Scope.Scope> =>
  Effect.gen(function* () {
    const agent = yield* Effect.acquireRelease(
      Effect.sync(() => new Agent({ connections: concurrency })),
      (open) => Effect.promise(() => open.destroy())
    )
    const target = yield* Ref.make(yield* storedTarget(store))
    const named = yield* Effect.makeLatch((yield* Ref.get(target)) !== undefined)
    const permits = yield* Effect.makeSemaphore(concurrency)

    const attempts = new Map<string, number>()

    const attempt = Effect.fnUntraced(function* (pending: PendingDelivery) {
      const loaded = yield* load(store, pending)
      if (loaded === undefined) return
      const { event } = loaded
      const url = yield* Ref.get(target)
      const timestamp = yield* unixSeconds
      const body = JSON.stringify(event, null, 2)
      const outcome = yield* post(agent, url ?? "", body, signatureHeader(secret, timestamp, body))
      const made = (attempts.get(event.id) ?? loaded.attempts) + 1
      attempts.set(event.id, made)
      yield* record(store, pending, made, outcome)
      if (!isSuccess(outcome)) return yield* Effect.fail("again" as const)
      attempts.delete(event.id)
    })

    const deliver = (pending: PendingDelivery): Effect.Effect<void> =>
      attempt(pending).pipe(
        permits.withPermits(1),
        Effect.tapError((error) =>
          error === "again" ? Effect.void : Effect.logError("A notification could not be recorded", error)
        ),
        Effect.retry(backoff),
        // The schedule has no end, so no failure gets here
        Effect.orDie
      )

    const deliveries = yield* FiberSet.make<void>()
    yield* named.await.pipe(
      Effect.zipRight(Queue.take(store.outbox)),
      Effect.flatMap((pending) => FiberSet.run(deliveries, deliver(pending))),
      Effect.forever,
      Effect.forkScoped
    )

    return {
      attemptsOf: (event) => attempts.get(event),
      setTarget: (url) =>
        store
          .transact((transaction) => Effect.sync(() => transaction.in(ownScope).put("webhook", "target", { url })))
          .pipe(Effect.zipRight(Ref.set(target, url)), Effect.zipRight(named.open), Effect.asVoid)
    }
  })
