import { createHmac } from "node:crypto"
import { Duration, Effect, FiberSet, Queue, Random, Ref, type Scope } from "effect"
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

/**
 * How long a refused notification rests: from 200 ms, doubling up to 5 s, and so that all that rest make at most 100
 * attempts a second.
 */
const restOf = (attempts: number, resting: number): Duration.Duration =>
  Duration.millis(Math.max(Math.min(200 * 2 ** (attempts - 1), 5000), resting * 10))

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

/** One of the platform's webhook endpoints; its notifications wait until its target is known. */
const makeEndpoint = Effect.fnUntraced(function* (store: Store, entry: Entry, secret: string) {
  const stored = yield* store.transact((transaction) =>
    Effect.sync(() => transaction.in(ownScope).get("webhook", targetIds[entry]))
  )
  const target = yield* Ref.make(stored)
  const isKnown = yield* Effect.makeLatch(stored !== undefined)
  const waiting = yield* Queue.unbounded<PendingDelivery>()
  const whenKnown: Effect.Effect<WebhookTarget> = Effect.flatMap(
    Effect.zipRight(isKnown.await, Ref.get(target)),
    (one) => (one === undefined ? Effect.dieMessage("The latch opens once the target is known") : Effect.succeed(one))
  )
  const setTarget = (one: WebhookTarget): Effect.Effect<void, EmulatorError> =>
    store
      .transact((transaction) => Effect.sync(() => transaction.in(ownScope).put("webhook", targetIds[entry], one)))
      .pipe(Effect.zipRight(Ref.set(target, one)), Effect.zipRight(isKnown.open), Effect.asVoid)
  return { secret, setTarget, waiting, whenKnown }
})

type Endpoint = Effect.Effect.Success<ReturnType<typeof makeEndpoint>>

interface Sender {
  readonly store: Store
  readonly agent: Agent
  readonly endpoints: Readonly<Record<Entry, Endpoint>>
  /** The number of attempts for each event whose notification is pending. */
  readonly attempts: Map<string, number>
  /** The refused notifications that wait for their next attempt. */
  readonly resting: FiberSet.FiberSet<unknown>
}

/** Makes one attempt; true if there is nothing left to do. */
const attempt = Effect.fnUntraced(function* ({ agent, attempts, endpoints, store }: Sender, pending: PendingDelivery) {
  const { secret, whenKnown } = endpoints[pending.entry]
  const target = yield* whenKnown
  const loaded = yield* load(store, pending, target)
  if (loaded === undefined) return true
  const timestamp = yield* unixSeconds
  const body = JSON.stringify(loaded.payload, null, 2)
  const outcome = yield* post(agent, target.url, body, signatureHeader(secret, timestamp, body))
  const made = (attempts.get(pending.event) ?? loaded.attempts) + 1
  attempts.set(pending.event, made)
  yield* record(store, pending, made, outcome)
  if (isSuccess(outcome)) attempts.delete(pending.event)
  return isSuccess(outcome)
})

/** Queues a refused notification again once it has rested. */
const repeatLater = ({ attempts, endpoints, resting }: Sender, pending: PendingDelivery) => {
  const rest = Effect.zipWith(FiberSet.size(resting), Random.nextRange(0.8, 1.2), (others, jitter) =>
    Duration.times(restOf(attempts.get(pending.event) ?? 1, others), jitter)
  )
  const again = Queue.offer(endpoints[pending.entry].waiting, pending)
  return FiberSet.run(resting, Effect.zipRight(Effect.flatMap(rest, Effect.sleep), again))
}

const deliver = (sender: Sender, pending: PendingDelivery) =>
  attempt(sender, pending).pipe(
    Effect.catchAll((error) => Effect.as(Effect.logError("A notification could not be recorded", error), false)),
    Effect.flatMap((isDone) => (isDone ? Effect.void : repeatLater(sender, pending)))
  )

/** Sends each event until its target answers 2xx, also after a restart. */
export const makeNotifier: (
  store: Store,
  secrets: Readonly<Record<Entry, string>>
) => Effect.Effect<Notifier, EmulatorError, Scope.Scope> = Effect.fnUntraced(function* (store, secrets) {
  const agent = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent({ connections: concurrency })),
    (open) => Effect.promise(() => open.destroy())
  )
  const endpoints = {
    snapshot: yield* makeEndpoint(store, "snapshot", secrets.snapshot),
    thin: yield* makeEndpoint(store, "thin", secrets.thin)
  }
  const resting = yield* FiberSet.make<unknown>()
  const sender: Sender = { store, agent, endpoints, attempts: new Map(), resting }
  for (const { waiting, whenKnown } of Object.values(endpoints)) {
    // As many fibers as attempts at a time: thousands that wait for one permit would all wake up for each
    const loop = Effect.forever(Effect.flatMap(Queue.take(waiting), (pending) => deliver(sender, pending)))
    const loops = Effect.replicateEffect(loop, concurrency, { concurrency, discard: true })
    yield* Effect.forkScoped(Effect.zipRight(whenKnown, loops))
  }
  yield* Queue.take(store.outbox).pipe(
    Effect.flatMap((pending) => Queue.offer(endpoints[pending.entry].waiting, pending)),
    Effect.forever,
    Effect.forkScoped
  )
  return {
    attemptsOf: (event) => sender.attempts.get(event),
    setTarget: (entry, target) => endpoints[entry].setTarget(target)
  }
})
