import { createHmac } from "node:crypto"
import { Duration, Effect, FiberSet, Queue, Ref, Schedule, type Scope } from "effect"
import { Agent, request } from "undici"
import type { EmulatorError } from "../EmulatorError.ts"
import type { Delivery, Entry, WebhookTarget } from "../Records.ts"
import { unixSeconds } from "../Service.ts"
import type { PendingDelivery, Scoped, Store } from "../store/Store.ts"
import { olderApiVersion } from "../Versions.ts"
import { inOlderVersion } from "./OlderVersion.ts"

/**
 * The value of the provider's `Stripe-Signature` header: `t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`, keyed
 * with the bytes of the whole secret.
 */
export const signatureHeader = (secret: string, timestamp: number, body: string): string =>
  `t=${timestamp},v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`

export interface Notifier {
  /** Sets the target of one of the platform's webhook endpoints; its notifications wait until then. */
  readonly setTarget: (entry: Entry, target: WebhookTarget) => Effect.Effect<void, EmulatorError>
  /** The attempts so far for an event whose notification is pending; undefined if this process made none. */
  readonly attemptsOf: (event: string) => number | undefined
}

const ownScope = "emulator"

const attemptTimeout = Duration.seconds(10)

/** Maximum number of concurrent attempts, which start in the order of their events. */
const concurrency = 32

/** From 200 ms, doubling up to 5 s, with jitter; retries forever. */
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

/** Makes one request and discards the response body. Every failure is an outcome, not an error. */
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
  ...delivery,
  state: isSuccess({ error, status }) ? "delivered" : "pending",
  attempts,
  lastStatus: status,
  lastError: error
})

/** Repeated identical failures are not written, so that an unreachable target does not fill the journal. */
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

const payloadOf = (objects: Scoped, delivery: Delivery, target: WebhookTarget): object | undefined => {
  if (delivery.entry === "thin") return objects.get("thin_event", delivery.event)
  const event = objects.get("event", delivery.event)
  return event !== undefined && (delivery.apiVersion ?? target.apiVersion) === olderApiVersion
    ? inOlderVersion(objects, event)
    : event
}

interface Loaded {
  readonly payload: object
  readonly attempts: number
}

/** The event and the number of earlier attempts; undefined if it no longer needs a notification. */
const load = (
  store: Store,
  { event, scope }: PendingDelivery,
  target: WebhookTarget
): Effect.Effect<Loaded | undefined, EmulatorError> =>
  store.transact((transaction) =>
    Effect.sync(() => {
      const objects = transaction.in(scope)
      const delivery = objects.get("delivery", event)
      const payload = delivery === undefined ? undefined : payloadOf(objects, delivery, target)
      return payload === undefined || delivery?.state !== "pending"
        ? undefined
        : { payload, attempts: delivery.attempts }
    })
  )

const targetIds: Readonly<Record<Entry, string>> = { snapshot: "target", thin: "thin" }

const makeEntry = Effect.fnUntraced(function* (store: Store, entry: Entry, secret: string) {
  const stored = yield* store.transact((transaction) =>
    Effect.sync(() => transaction.in(ownScope).get("webhook", targetIds[entry]))
  )
  const target = yield* Ref.make(stored)
  const named = yield* Effect.makeLatch(stored !== undefined)
  const whenNamed: Effect.Effect<WebhookTarget> = Effect.flatMap(
    Effect.zipRight(named.await, Ref.get(target)),
    (one) => (one === undefined ? Effect.dieMessage("The latch opens once the target is named") : Effect.succeed(one))
  )
  const name = (one: WebhookTarget): Effect.Effect<void, EmulatorError> =>
    store
      .transact((transaction) => Effect.sync(() => transaction.in(ownScope).put("webhook", targetIds[entry], one)))
      .pipe(Effect.zipRight(Ref.set(target, one)), Effect.zipRight(named.open), Effect.asVoid)
  return { name, secret, whenNamed }
})

export type Secrets = Readonly<Record<Entry, string>>

/** Sends each event until its target answers 2xx, also after a restart. */
export const makeNotifier = (store: Store, secrets: Secrets): Effect.Effect<Notifier, EmulatorError, Scope.Scope> =>
  Effect.gen(function* () {
    const agent = yield* Effect.acquireRelease(
      Effect.sync(() => new Agent({ connections: concurrency })),
      (open) => Effect.promise(() => open.destroy())
    )
    const entries = {
      snapshot: yield* makeEntry(store, "snapshot", secrets.snapshot),
      thin: yield* makeEntry(store, "thin", secrets.thin)
    }
    const permits = yield* Effect.makeSemaphore(concurrency)

    const attempts = new Map<string, number>()

    const attempt = Effect.fnUntraced(function* (pending: PendingDelivery) {
      const { secret, whenNamed } = entries[pending.entry]
      const target = yield* whenNamed
      const loaded = yield* load(store, pending, target)
      if (loaded === undefined) return
      const timestamp = yield* unixSeconds
      const body = JSON.stringify(loaded.payload, null, 2)
      const outcome = yield* post(agent, target.url, body, signatureHeader(secret, timestamp, body))
      const made = (attempts.get(pending.event) ?? loaded.attempts) + 1
      attempts.set(pending.event, made)
      yield* record(store, pending, made, outcome)
      if (!isSuccess(outcome)) return yield* Effect.fail("again" as const)
      attempts.delete(pending.event)
    })

    const deliver = (pending: PendingDelivery): Effect.Effect<void> =>
      entries[pending.entry].whenNamed.pipe(
        Effect.zipRight(permits.withPermits(1)(attempt(pending))),
        Effect.tapError((error) =>
          error === "again" ? Effect.void : Effect.logError("A notification could not be recorded", error)
        ),
        Effect.retry(backoff),
        // The schedule is endless, so no failure gets here
        Effect.orDie
      )

    const deliveries = yield* FiberSet.make<void>()
    yield* Queue.take(store.outbox).pipe(
      Effect.flatMap((pending) => FiberSet.run(deliveries, deliver(pending))),
      Effect.forever,
      Effect.forkScoped
    )

    return {
      attemptsOf: (event) => attempts.get(event),
      setTarget: (entry, target) => entries[entry].name(target)
    }
  })
