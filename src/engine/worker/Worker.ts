import { Cause, Duration, Effect, Layer, Option, Runtime, Schedule } from "effect"
import { Cipher } from "../../platform/kit/Cipher.ts"
import { observeMetrics } from "../../platform/telemetry/Metrics.ts"
import { Attempts, type AttemptsListener } from "../attempts/Attempts.ts"
import { Destinations } from "../attempts/Signing.ts"
import type { ClaimedDelivery } from "../queue/Claim.ts"
import { LocalHandOff } from "../queue/Enqueue.ts"
import { Queue } from "../queue/Queue.ts"
import { WakeUp } from "../queue/WakeUp.ts"
import { Transport } from "../transport/Transport.ts"
import { Claiming, ClaimingAside, handOffRecipient } from "./Claiming.ts"
import { Held, LoopHealth, makeBegin, patience, Recording } from "./Held.ts"
import type { WorkerOptions } from "./Limits.ts"
import { WorkerLife, type WorkerState } from "./WorkerLife.ts"

export type { WorkerOptions } from "./Limits.ts"

/**
 * The delivery worker. Claiming takes due deliveries and begins their attempts; the fibers of a pool make them;
 * recording stores their outcomes, batching those that arrive during the previous flush.
 *
 * A third loop claims aside: slow endpoints' deliveries, which the first leaves out, and, while more is due than the
 * first has reached, newly due ones, the newest first. So a delivery to an endpoint with room starts at once, however
 * many to other endpoints precede it in the queue or hang in flight.
 *
 * Deliveries stored by the same process are taken over without a claim while there is room.
 *
 * Any number of workers share one queue: each skips rows that others have locked.
 *
 * On shutdown, it stops claiming, lets attempts in flight end, and records them. Attempts that it can't record come due
 * again when their leases expire: an event is delivered at least once, never lost.
 */
export const workerLayer = (
  options: WorkerOptions
): Layer.Layer<never, never, Queue | Transport | Cipher | WakeUp | LocalHandOff> =>
  Layer.scopedDiscard(makeWorker(options))

const makeWorker = Effect.fnUntraced(function* (options: WorkerOptions) {
  const queue = yield* Queue
  const wakeUp = yield* WakeUp
  const destinations = new Destinations(queue, yield* Cipher)
  const runFork = Runtime.runFork(yield* Effect.runtime<never>())
  const held = new Held(queue, () => claiming.noteRoom())
  const loops = {
    recording: new LoopHealth("starts"),
    aside: new LoopHealth("starts"),
    claiming: new LoopHealth("starts")
  }
  const recording = new Recording(queue, held, loops.recording)
  const listener: AttemptsListener = {
    onFinished: (attempt) => {
      recording.add(attempt)
      if (attempts.pace.isSlow(attempt.delivery.endpointId)) aside.noteNews()
      claiming.noteEnded()
    },
    onSlow: (waiting) => {
      if (waiting.length > 0) runFork(held.giveBack(waiting, Duration.zero))
      aside.noteNews()
      claiming.noteRoom()
    },
    onQuickAgain: () => claiming.noteLeftOutBefore(),
    onUnsignable: (delivery, error) =>
      void runFork(
        Effect.logError("A delivery can't be signed", error).pipe(
          // Stored while its endpoint was being deleted: the housekeeping ends it
          Effect.unless(() => destinations.isDeleted(delivery)),
          Effect.zipRight(held.giveBack([delivery], unsignableDelay)),
          Effect.annotateLogs(logged(delivery))
        )
      ),
    onTooLate: (delivery) => void runFork(held.giveBack([delivery], Duration.zero)),
    onDefect: (delivery, cause) => {
      held.settle(1)
      runFork(Effect.annotateLogs(Effect.logError("An attempt failed by a defect", cause), logged(delivery)))
    }
  }
  const attempts = yield* Attempts.make(options, { transport: yield* Transport, destinations }, listener)
  const begin = makeBegin({ held, attempts, destinations, recording, startWithin: options.startWithin })
  const isBehind = () => claiming.isBehind
  const aside = new ClaimingAside({ options, queue, recording, attempts, begin, health: loops.aside, isBehind })
  const onNewsAside = () => aside.noteNews()
  const parts = { options, queue, recording, wakeUp, attempts, held, begin, onNewsAside }
  const claiming = new Claiming({ ...parts, health: loops.claiming })
  const recipient = handOffRecipient({
    options,
    attempts,
    claiming,
    held,
    begin,
    run: (effect) => void runFork(effect)
  })

  yield* observeMetrics((metrics) =>
    Effect.sync(() => {
      metrics.set("connected_payments.delivery.attempt.active", attempts.size, [])
    })
  )
  let isStopping = false
  yield* Effect.flatMap(
    Effect.serviceOption(WorkerLife),
    Option.match({
      onNone: () => Effect.void,
      onSome: ({ register }) => register((now) => (isStopping ? stopping : stateOf(now, loops, held, options.lease)))
    })
  )
  // Finalizers run in reverse: claiming stops first, then attempts in flight end, then their outcomes are recorded.
  // Attempts still in flight after that are interrupted with the pool
  yield* Effect.acquireRelease(loop(recording.round), (fiber) => fiber.interruptAsFork(fiber.id()))
  yield* Effect.addFinalizer(() => drain(attempts, held, recording, options.drainTimeout))
  yield* (yield* LocalHandOff).register(recipient)
  yield* Effect.acquireRelease(loop(claiming.listening), (fiber) => fiber.interruptAsFork(fiber.id()))
  for (const round of [aside.round, claiming.round]) {
    yield* Effect.acquireRelease(loop(round), (fiber) =>
      fiber.interruptAsFork(fiber.id()).pipe(Effect.zipRight(fiber.await))
    )
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isStopping = true
    })
  )
})

/**
 * Drains a worker that no longer claims: releases attempts that have not begun, and lets those in flight end and be
 * recorded within the timeout. The rest come due again when their leases expire.
 */
const drain = (attempts: Attempts, held: Held, recording: Recording, timeout: Duration.Duration): Effect.Effect<void> =>
  Effect.suspend(() => held.giveBack(attempts.takeWaiting(), Duration.zero)).pipe(
    Effect.zipRight(Effect.suspend(() => Effect.logInfo(`Shutdown: no more attempts begin; in flight: ${held.count}`))),
    Effect.zipRight(waitUntil(() => held.count === 0)),
    // Finalizers are uninterruptible: without this, the timeout would have no effect
    Effect.interruptible,
    Effect.timeoutOption(timeout),
    Effect.flatMap(
      Option.match({
        onNone: () => Effect.logWarning(`${held.count} attempts were in flight at shutdown; their leases will end`),
        onSome: () => Effect.logInfo("Shutdown: every attempt has ended and is recorded")
      })
    ),
    Effect.zipRight(Effect.sync(() => recording.close()))
  )

const waitUntil = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (holds: boolean) => holds, schedule: Schedule.spaced("20 millis") })
  )

/**
 * The state of the worker. Attempts that neither end nor are recorded long after their lease count as stuck, like a
 * loop.
 */
const stateOf = (
  now: number,
  { aside, claiming, recording }: Readonly<Record<"recording" | "aside" | "claiming", LoopHealth>>,
  held: Held,
  lease: Duration.Duration
): WorkerState => {
  const isStopping = false
  const stuck = [claiming, recording, aside].find((health) => health.isStuck(now))
  if (stuck !== undefined) return { doing: `makes no progress: it ${stuck.doing}`, isStuck: true, isStopping }
  const endedBy = held.movedAt + Duration.toMillis(lease) + patience
  return recording.isResting && held.count > 0 && now > endedBy
    ? { doing: "makes no progress: attempts do not end", isStuck: true, isStopping }
    : { doing: claiming.doing, isStuck: false, isStopping }
}

/** The state during shutdown: the loops have ended, and attempts may take as long as the drain timeout allows. */
const stopping: WorkerState = { doing: "is stopping", isStuck: false, isStopping: true }

/** How long a delivery that can't be signed waits: that is for the operator to fix, not the consumer. */
const unsignableDelay = Duration.minutes(1)

/** A bug in one round must not end the worker silently. */
const loop = (round: Effect.Effect<void>) =>
  round.pipe(
    Effect.catchAllDefect((defect) =>
      Effect.zipRight(Effect.logError("The worker met a defect", Cause.die(defect)), Effect.sleep("1 second"))
    ),
    Effect.forever,
    Effect.withTracerEnabled(false),
    Effect.interruptible,
    Effect.forkDaemon
  )

const logged = ({ endpointId, id }: ClaimedDelivery) => ({ deliveryId: id, endpointId })
