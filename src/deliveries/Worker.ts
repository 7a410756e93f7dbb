import { Headers, HttpTraceContext } from "@effect/platform"
import { Cause, Chunk, Clock, Duration, Effect, FiberSet, Layer, Queue as Mailbox, Option, Schedule } from "effect"
import { localDestinationsAllowed } from "../endpoints/Endpoints.ts"
import { secretContext } from "../endpoints/Secrets.ts"
import { Cipher, DecryptionFailed } from "../kit/Cipher.ts"
import type { EndpointId } from "../kit/Ids.ts"
import type { AttemptOutcome } from "./Attempt.ts"
import { type ClaimedDelivery, encryptedSecrets, type FinishedAttempt, type NextStep, Queue } from "./Queue.ts"
import { classify, nextDelay } from "./RetryPolicy.ts"
import { signatureHeader, signatureHeaderName } from "./Signature.ts"
import { Transport } from "./Transport.ts"
import { WakeUp } from "./WakeUp.ts"

export interface WorkerOptions {
  /** The transport's time-out for one exchange, plus what recording its outcome may take. */
  readonly lease: Duration.Duration
  /** Attempts in flight in this process. */
  readonly concurrency: number
  /** Attempts in flight per endpoint in this process. */
  readonly concurrencyPerEndpoint: number
  /** How often due deliveries are looked for when nothing wakes the worker. */
  readonly pollInterval: Duration.Duration
  /** How long a shutdown waits for attempts in flight. */
  readonly drainTimeout: Duration.Duration
  readonly allowLocalDestinations: boolean
  readonly userAgent: string
}

/** Most deliveries that one claim takes, and most attempts that one flush records. */
const batchSize = 128

/** How long a delivery rests whose secrets can't be decrypted: that is the operator's to mend, not the consumer's. */
const undecryptableDelay = Duration.minutes(1)

const reconnect = Schedule.exponential("100 millis").pipe(
  Schedule.jittered,
  Schedule.union(Schedule.spaced("2 seconds"))
)

/**
 * What an attempt's outcome makes of its delivery (contract, States and transitions): delivered; queued for the next
 * automatic attempt while any is left; failed. A manual re-send makes one attempt.
 */
export const nextStep = Effect.fnUntraced(function* (
  attempt: Pick<ClaimedDelivery, "attempt" | "trigger">,
  outcome: AttemptOutcome
) {
  const verdict = classify(outcome)
  if (verdict === "delivered") {
    return { state: "delivered" } satisfies NextStep
  }
  const delay =
    verdict === "retry" && attempt.trigger === "automatic"
      ? yield* nextDelay({ attemptNumber: attempt.attempt, retryAfter: outcome.retryAfter })
      : Option.none()
  return Option.match(delay, {
    onNone: (): NextStep => ({ state: "failed" }),
    onSome: (delay): NextStep => ({ state: "queued", delay })
  })
})

/**
 * The pool of fibers that delivers: one claims due deliveries, one fiber per delivery makes the attempt, one records
 * outcomes, gathering what finishes while the flush before is under way.
 *
 * On shutdown it stops claiming, lets attempts in flight end, and records them. What it can't record comes due again
 * when its lease ends: an event is delivered at least once, never lost.
 */
export const workerLayer = (options: WorkerOptions): Layer.Layer<never, never, Queue | Transport | Cipher | WakeUp> =>
  Layer.scopedDiscard(makeWorker(options))

const makeWorker = Effect.fnUntraced(function* (options: WorkerOptions) {
  const queue = yield* Queue
  const transport = yield* Transport
  const cipher = yield* Cipher
  const wakeUp = yield* WakeUp
  const finished = yield* Mailbox.unbounded<FinishedAttempt>()
  /** Told when an attempt was recorded: a claim may be waiting for room. */
  const room = yield* Mailbox.sliding<void>(1)
  const inFlight = new Map<EndpointId, number>()
  let unrecorded = 0
  let closing = false

  const started = (delivery: ClaimedDelivery) => {
    unrecorded += 1
    inFlight.set(delivery.endpointId, (inFlight.get(delivery.endpointId) ?? 0) + 1)
  }
  const ended = ({ endpointId }: ClaimedDelivery) => {
    unrecorded -= 1
    const left = (inFlight.get(endpointId) ?? 0) - 1
    if (left > 0) {
      inFlight.set(endpointId, left)
    } else {
      inFlight.delete(endpointId)
    }
  }

  const flush = (attempts: ReadonlyArray<FinishedAttempt>) =>
    queue.finish(attempts).pipe(
      Effect.tapError((error) => Effect.logWarning("Attempts could not be recorded yet", error)),
      Effect.retry({ schedule: reconnect, while: () => !closing }),
      Effect.catchAll((error) => Effect.logError("Attempts were not recorded; their leases will end", error)),
      Effect.zipRight(
        Effect.sync(() => {
          for (const { delivery } of attempts) {
            ended(delivery)
          }
        })
      ),
      Effect.zipRight(Mailbox.offer(room, undefined))
    )

  const secretsOf = Effect.fnUntraced(function* (delivery: ClaimedDelivery) {
    const [current, ...previous] = yield* Effect.forEach(encryptedSecrets(delivery), ({ encrypted, id }) =>
      cipher.decrypt(encrypted, secretContext(delivery, id))
    )
    return current === undefined
      ? yield* new DecryptionFailed({ message: "The delivery's secrets are gone" })
      : ([current, ...previous] as const)
  })

  const attempt = Effect.fnUntraced(function* (delivery: ClaimedDelivery) {
    const secrets = yield* secretsOf(delivery)
    const startedAt = new Date(yield* Clock.currentTimeMillis)
    const outcome = yield* transport.post({
      url: delivery.url,
      body: delivery.payload,
      headers: {
        "content-type": "application/json",
        "user-agent": options.userAgent,
        "service-delivery-id": delivery.id,
        [signatureHeaderName]: signatureHeader({
          timestamp: Math.floor(startedAt.getTime() / 1000),
          body: delivery.payload,
          secrets
        })
      },
      allowLocal: localDestinationsAllowed(options, delivery)
    })
    const next = yield* nextStep(delivery, outcome)
    yield* Effect.annotateCurrentSpan({
      "http.response.status_code": outcome.httpStatus ?? 0,
      "delivery.error_code": outcome.errorCode ?? "",
      "delivery.state": next.state
    })
    yield* Mailbox.offer(finished, { delivery, startedAt, outcome, next })
  })

  const giveBack = (delivery: ClaimedDelivery, delay: Duration.Duration) =>
    queue.release([delivery], delay).pipe(
      Effect.catchAll((error) => Effect.logWarning("A delivery could not be given back; its lease will end", error)),
      Effect.ensuring(Effect.sync(() => ended(delivery))),
      Effect.zipRight(Mailbox.offer(room, undefined))
    )

  const deliver = (delivery: ClaimedDelivery) =>
    attempt(delivery).pipe(
      Effect.withSpan("deliver", {
        kind: "client",
        root: true,
        links: linksTo(delivery.traceparent),
        attributes: spanAttributes(delivery)
      }),
      Effect.catchTag("DecryptionFailed", (error) =>
        Effect.zipRight(Effect.logError("A delivery can't be signed", error), giveBack(delivery, undecryptableDelay))
      ),
      // A bug must not take the place of the other deliveries: the lease ends and the history says so
      Effect.catchAllDefect((defect) =>
        Effect.zipRight(
          Effect.logError("An attempt failed by a defect", Cause.die(defect)),
          Effect.sync(() => ended(delivery))
        )
      ),
      Effect.annotateLogs({ deliveryId: delivery.id, endpointId: delivery.endpointId })
    )

  const running = yield* FiberSet.make()

  // One step: a claim that is not followed by its fibers would have to wait for its lease to end
  const claim = Effect.gen(function* () {
    const claimed = yield* queue.claim({
      limit: Math.min(options.concurrency - unrecorded, batchSize),
      lease: options.lease,
      perEndpoint: options.concurrencyPerEndpoint,
      inFlight
    })
    for (const delivery of claimed) {
      started(delivery)
      // A fiber inherits what it was forked in: an attempt that outlasts the shutdown must be interruptible
      yield* FiberSet.run(running, Effect.interruptible(deliver(delivery)))
    }
    return claimed.length
  }).pipe(
    Effect.uninterruptible,
    Effect.catchAll((error) =>
      Effect.as(Effect.zipRight(Effect.logWarning("Deliveries can't be claimed", error), Effect.sleep("1 second")), 0)
    )
  )

  const claimAndWait = Effect.gen(function* () {
    if (unrecorded >= options.concurrency) {
      return yield* Mailbox.take(room)
    }
    if ((yield* claim) === 0) {
      // An endpoint at its cap may have room again before anything new comes
      yield* Effect.raceFirst(Effect.raceFirst(wakeUp.await, Mailbox.take(room)), Effect.sleep(options.pollInterval))
    }
  })

  // Finalizers run in reverse: claiming stops first, then attempts in flight end, then their records are written
  yield* Effect.acquireRelease(
    Mailbox.takeBetween(finished, 1, batchSize * 4).pipe(
      Effect.flatMap((batch) => Effect.uninterruptible(flush(Chunk.toReadonlyArray(batch)))),
      Effect.forever,
      Effect.withTracerEnabled(false),
      Effect.interruptible,
      Effect.forkDaemon
    ),
    (fiber) => fiber.interruptAsFork(fiber.id())
  )
  yield* Effect.addFinalizer(() =>
    waitUntil(() => unrecorded === 0).pipe(
      // A finalizer can't be interrupted, and neither could the wait in it: the time-out would have no effect
      Effect.interruptible,
      Effect.timeoutOption(options.drainTimeout),
      Effect.flatMap(
        Option.match({
          onNone: () => Effect.logWarning(`${unrecorded} attempts were in flight at shutdown; their leases will end`),
          onSome: () => Effect.void
        })
      ),
      Effect.zipRight(
        Effect.sync(() => {
          closing = true
        })
      )
    )
  )
  yield* Effect.acquireRelease(
    claimAndWait.pipe(Effect.forever, Effect.withTracerEnabled(false), Effect.interruptible, Effect.forkDaemon),
    (fiber) => fiber.interruptAsFork(fiber.id()).pipe(Effect.zipRight(fiber.await))
  )
})

const waitUntil = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (holds: boolean) => holds, schedule: Schedule.spaced("20 millis") })
  )

const linksTo = (traceparent: string | null) =>
  traceparent === null
    ? []
    : Option.toArray(HttpTraceContext.w3c(Headers.fromInput({ traceparent }))).map((span) => ({
        _tag: "SpanLink" as const,
        span,
        attributes: {}
      }))

const spanAttributes = (delivery: ClaimedDelivery) => ({
  "delivery.id": delivery.id,
  "delivery.attempt": delivery.attempt,
  "delivery.trigger": delivery.trigger,
  "endpoint.id": delivery.endpointId,
  "event.id": delivery.eventId,
  "organization.id": delivery.organizationId,
  environment: delivery.environment
})
