import { performance } from "node:perf_hooks"
import { Cause, Duration, Effect, Layer, Option, Runtime, Schedule } from "effect"
import type { DestinationSettings } from "../../endpoints/Endpoints.ts"
import { Cipher } from "../../kit/Cipher.ts"
import type { EndpointId } from "../../kit/Ids.ts"
import { Signal } from "../../publishing/Signal.ts"
import { WakeUp } from "../../publishing/WakeUp.ts"
import { observeMetrics } from "../../telemetry/Metrics.ts"
import { Attempts } from "./Attempts.ts"
import type { ClaimedDelivery } from "./Claim.ts"
import { makeClaimsAside } from "./ClaimsAside.ts"
import { Destinations } from "./Destinations.ts"
import { type FinishedAttempt, Queue } from "./Queue.ts"
import { firstAttempts } from "./Shares.ts"
import { Transport } from "./Transport.ts"
import { Turns } from "./Turns.ts"

export interface WorkerOptions extends DestinationSettings {
  /** The transport's time-out for one exchange, plus what recording its outcome may take. */
  readonly lease: Duration.Duration
  /** How long after its claim an attempt may still begin, so that its lease outlives it. */
  readonly startWithin: Duration.Duration
  /** Attempts in flight in this process, but for those that have waited for their answer for a moment: see `Attempts`. */
  readonly concurrency: number
  /** Attempts in flight per endpoint in this process. */
  readonly concurrencyPerEndpoint: number
  /** How often due deliveries are looked for when nothing wakes the worker. */
  readonly pollInterval: Duration.Duration
  /** How long a shutdown waits for attempts in flight. */
  readonly drainTimeout: Duration.Duration
  readonly userAgent: string
}

/** Most deliveries that one claim takes. */
const maxClaim = 256

/** Most attempts that one flush records. */
const maxFlush = 512

/** While the queue is full, a claim waits until it is worth its while, but no longer than this, in milliseconds. */
const gatherRoomFor = 15

/**
 * While many attempts end, a flush waits for as many as are worth its while, but no longer than this, in milliseconds:
 * what a statement costs by itself, and the waking of two processes, is shared by more. Where few end, nothing waits.
 */
const gatherRecords = { whileFlushedAtLeast: 32, enough: 192, forMillis: 10 }

/** How long a claim rests after one that found all that it looked at in other workers' hands, in milliseconds. */
const passedOver = 5

/** How much longer than the poll interval a worker sleeps that finds nothing again and again. */
const maxIdleFactor = 4

/** How long a delivery rests whose secrets can't be decrypted: that is the operator's to mend, not the consumer's. */
const undecryptableDelay = Duration.minutes(1)

/** How long deliveries rest that were claimed but could not be begun. */
const notBegunDelay = Duration.seconds(1)

/** Other processes are told at most this often, in milliseconds, that this one has no room for what is due. */
const passOnEvery = 100

const reconnect = Schedule.exponential("100 millis").pipe(
  Schedule.jittered,
  Schedule.union(Schedule.spaced("2 seconds"))
)

/**
 * The worker that delivers: one loop claims due deliveries and starts their attempts, one records outcomes, gathering
 * what ends while the flush before is under way. Between the two, attempts are plain callbacks.
 *
 * A third loop starts attempts aside. It asks for slow endpoints' deliveries, which the first leaves out. And while more
 * is due than the first has come to, it takes what came due just now, the newest first: so a delivery to an endpoint with
 * room starts at once, however many of other endpoints stand before it in the queue and hang in flight.
 *
 * On shutdown it stops claiming, lets attempts in flight end, and records them. What it can't record comes due again
 * when its lease ends: an event is delivered at least once, never lost.
 */
export const workerLayer = (options: WorkerOptions): Layer.Layer<never, never, Queue | Transport | Cipher | WakeUp> =>
  Layer.scopedDiscard(makeWorker(options))

const makeWorker = Effect.fnUntraced(function* (options: WorkerOptions) {
  const queue = yield* Queue
  const wakeUp = yield* WakeUp
  const runFork = Runtime.runFork(yield* Effect.runtime<never>())
  const destinations = new Destinations(queue, yield* Cipher)
  const turns = new Turns({ concurrency: options.concurrency, perEndpoint: options.concurrencyPerEndpoint })
  /** Raised when something may be due or there may be room for it. */
  const worthClaiming = new Signal()
  const worthClaimingAside = new Signal()
  const toRecord = new Signal()
  const enoughToRecord = new Signal()
  const finished: Array<FinishedAttempt> = []
  /** Attempts and what else is claimed and not yet written back. */
  let unrecorded = 0
  let lastFlushed = 0
  /** Whether the last claim left something that was due: for want of room, or at an endpoint's cap. */
  let leftSome = false
  /** Whether more may be due than the claims have come to. */
  let behind = false
  /** The room that the claiming loop waits for; none while it waits for other news. */
  let roomWanted: number | null = null
  let closing = false

  /** Places for attempts, and for those that wait for their record: recording must not hold up sending. */
  const room = () => Math.min(attempts.room, 5 * options.concurrency - (unrecorded - attempts.aside), maxClaim)

  const roomMade = () => {
    if (roomWanted === null ? leftSome : room() >= roomWanted) worthClaiming.raise()
  }

  const settled = (count: number) => {
    unrecorded -= count
    roomMade()
  }

  const giveBack = (deliveries: ReadonlyArray<ClaimedDelivery>, delay: Duration.Duration) =>
    (deliveries.length === 0 ? Effect.void : queue.release(deliveries, delay)).pipe(
      Effect.catchAll((error) => Effect.logWarning("Deliveries could not be given back; their leases will end", error)),
      Effect.ensuring(Effect.sync(() => settled(deliveries.length)))
    )

  const attempts = yield* Attempts.make(
    options,
    { transport: yield* Transport, destinations },
    {
      onFinished: (attempt) => {
        finished.push(attempt)
        toRecord.raise()
        if (finished.length === gatherRecords.enough) enoughToRecord.raise()
        if (attempts.pace.isSlow(attempt.delivery.endpointId)) worthClaimingAside.raise()
        roomMade()
      },
      onSlow: (waiting) => {
        if (waiting.length > 0) runFork(giveBack(waiting, Duration.zero))
        worthClaimingAside.raise()
        roomMade()
      },
      onQuickAgain: () => {
        turns.startAfresh()
        worthClaiming.raise()
      },
      onUnsignable: (delivery, error) =>
        void runFork(
          Effect.logError("A delivery can't be signed", error).pipe(
            Effect.zipRight(giveBack([delivery], undecryptableDelay)),
            Effect.annotateLogs(logged(delivery))
          )
        ),
      onTooLate: (delivery) => void runFork(giveBack([delivery], Duration.zero)),
      onDefect: (delivery, defect) => {
        settled(1)
        runFork(
          Effect.annotateLogs(Effect.logError("An attempt failed by a defect", Cause.die(defect)), logged(delivery))
        )
      }
    }
  )

  yield* observeMetrics((metrics) =>
    Effect.sync(() => metrics.set("connected_payments.delivery.attempt.active", attempts.size, []))
  )

  const flush = Effect.suspend(() => {
    const batch = finished.splice(0, maxFlush)
    lastFlushed = batch.length
    return queue.finish(batch).pipe(
      Effect.tapError((error) => Effect.logWarning("Attempts could not be recorded yet", error)),
      Effect.retry({ schedule: reconnect, while: () => !closing }),
      Effect.catchAll((error) => Effect.logError("Attempts were not recorded; their leases will end", error)),
      Effect.zipRight(Effect.sync(() => settled(batch.length)))
    )
  })

  const record = Effect.suspend(() => {
    if (finished.length === 0) return toRecord.wait()
    const gathers = lastFlushed >= gatherRecords.whileFlushedAtLeast && finished.length < gatherRecords.enough
    return Effect.zipRight(
      gathers ? enoughToRecord.wait(gatherRecords.forMillis) : Effect.void,
      Effect.uninterruptible(flush)
    )
  })

  /** Begins what was claimed, or gives it back. */
  const start = (deliveries: ReadonlyArray<ClaimedDelivery>, claimedAt: number, aside: boolean) => {
    unrecorded += deliveries.length
    return destinations.load(deliveries).pipe(
      Effect.matchEffect({
        onSuccess: () =>
          Effect.sync(() => {
            const startBefore = claimedAt + Duration.toMillis(options.startWithin)
            for (const delivery of deliveries) attempts.start(delivery, startBefore, aside)
          }),
        onFailure: (error) =>
          Effect.zipRight(
            Effect.logWarning("The destinations of deliveries can't be read", error),
            giveBack(deliveries, notBegunDelay)
          )
      })
    )
  }

  const perNewcomer = firstAttempts(options)

  /** The endpoints of which a claim may have left some: those that it and what was in flight before bring to the cap. */
  const atCap = (
    before: ReadonlyMap<EndpointId, number>,
    caps: ReadonlyMap<EndpointId, number>,
    deliveries: ReadonlyArray<ClaimedDelivery>
  ) => {
    const counts = new Map(before)
    for (const { endpointId } of deliveries) counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1)
    return [...counts]
      .filter(([id, count]) => count >= (caps.get(id) ?? perNewcomer) && !attempts.pace.isSlow(id))
      .map(([endpointId]) => endpointId)
  }

  /** Takes in what a claim left; where there is room for it by now, the next claim need not wait for the news. */
  const noteLeft = (capped: ReadonlyArray<EndpointId>, full: boolean) => {
    leftSome = full || turns.apart.size > 0 || capped.length > 0
    const hasRoom = (endpointId: EndpointId) =>
      attempts.held(endpointId) < attempts.capOf(endpointId) && !turns.apart.has(endpointId)
    if (capped.some(hasRoom)) worthClaiming.raise()
  }

  const known = {
    get slow() {
      return attempts.pace.slow.keys()
    },
    isSlow: (endpointId: EndpointId) => attempts.pace.isSlow(endpointId),
    capOf: (endpointId: EndpointId) => attempts.capOf(endpointId)
  }

  // One step: a claim that is not followed by its attempts would have to wait for its lease to end
  const claim = Effect.suspend(() => {
    const limit = room()
    const claimedAt = performance.now()
    const inFlight = attempts.takeCounts()
    const caps = attempts.caps()
    const turn = turns.next(inFlight, claimedAt, known)
    return queue
      .claim({
        limit,
        lease: options.lease,
        perEndpoint: options.concurrencyPerEndpoint,
        perNewcomer,
        inFlight,
        caps,
        ...turn
      })
      .pipe(
        Effect.tap((claimed) => {
          turns.learn(turn, claimed, performance.now() - claimedAt)
          return start(claimed.deliveries, claimedAt, false)
        }),
        Effect.tap(({ deliveries, more }) =>
          Effect.sync(() => {
            const full = deliveries.length >= limit
            noteLeft(atCap(inFlight, caps, deliveries), full)
            behind = full || more
            if (behind || attempts.pace.slow.size > 0) worthClaimingAside.raise()
          })
        ),
        Effect.map(({ deliveries, more, nextDueInMillis }) => ({
          found: deliveries.length,
          full: deliveries.length >= limit,
          more,
          nextDueInMillis
        }))
      )
  }).pipe(
    Effect.uninterruptible,
    Effect.catchAll((error) =>
      Effect.logWarning("Deliveries can't be claimed", error).pipe(
        Effect.zipRight(Effect.sleep("1 second")),
        Effect.as({ found: 0, full: false, more: false, nextDueInMillis: null })
      )
    )
  )

  const claimAside = makeClaimsAside({
    queue,
    attempts,
    options,
    start,
    news: worthClaimingAside,
    isBehind: () => behind
  })

  const pollMillis = Duration.toMillis(options.pollInterval)
  let idleRounds = 0
  let passedOnAt = 0

  /** How long to sleep where nothing more is to be had now. */
  const idleMillis = ({ found, nextDueInMillis }: Effect.Effect.Success<typeof claim>) => {
    idleRounds = found > 0 || unrecorded > 0 ? 0 : Math.min(idleRounds + 1, maxIdleFactor - 1)
    const poll = pollMillis * (1 + idleRounds)
    return nextDueInMillis === null ? poll : Math.min(poll, Math.max(1, Math.ceil(nextDueInMillis)))
  }

  /** More is due than there is room for: a worker elsewhere may have some. */
  const passOn = Effect.suspend(() => {
    if (performance.now() - passedOnAt < passOnEvery) return Effect.void
    passedOnAt = performance.now()
    return wakeUp.announce
  })

  const waitForRoom = Effect.gen(function* () {
    if (room() < 1) {
      behind = true
      worthClaimingAside.raise()
    }
    const enough = Math.min(maxClaim, Math.ceil(options.concurrency * 0.75))
    const waitedSince = performance.now()
    while (room() < 1 || (room() < enough && performance.now() - waitedSince < gatherRoomFor)) {
      roomWanted = room() < 1 ? 1 : enough
      yield* worthClaiming.wait(room() < 1 ? undefined : gatherRoomFor)
    }
    roomWanted = null
  })

  const claimAndWait = Effect.gen(function* () {
    const claimed = yield* claim
    if (claimed.full || claimed.more) {
      if (room() < 1) yield* passOn
      yield* waitForRoom
      // All that it looked at is in other workers' hands
      if (claimed.found === 0) yield* Effect.sleep(passedOver)
    } else {
      yield* worthClaiming.wait(idleMillis(claimed))
      if (room() < 1) yield* waitForRoom
    }
  })

  /** Takes what is announced only while there is room for it: else it is other processes' to take. */
  const listen = Effect.suspend(() =>
    room() < 1
      ? Effect.sleep("10 millis")
      : Effect.zipRight(
          wakeUp.await,
          Effect.sync(() => worthClaiming.raise())
        )
  )

  // A bug in one round must not end the worker without a word
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

  // Finalizers run in reverse: claiming stops first, then attempts in flight end, then their records are written
  yield* Effect.addFinalizer(() => Effect.sync(() => attempts.abandonAll()))
  yield* Effect.acquireRelease(loop(record), (fiber) => fiber.interruptAsFork(fiber.id()))
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => giveBack(attempts.takeWaiting(), Duration.zero)).pipe(
      Effect.zipRight(
        Effect.suspend(() => Effect.logInfo(`Shutdown: no more attempts begin; in flight: ${unrecorded}`))
      ),
      Effect.zipRight(waitUntil(() => unrecorded === 0)),
      // A finalizer can't be interrupted, and neither could the wait in it: the time-out would have no effect
      Effect.interruptible,
      Effect.timeoutOption(options.drainTimeout),
      Effect.flatMap(
        Option.match({
          onNone: () => Effect.logWarning(`${unrecorded} attempts were in flight at shutdown; their leases will end`),
          onSome: () => Effect.logInfo("Shutdown: every attempt has ended and is recorded")
        })
      ),
      Effect.zipRight(
        Effect.sync(() => {
          closing = true
        })
      )
    )
  )
  yield* Effect.acquireRelease(loop(listen), (fiber) => fiber.interruptAsFork(fiber.id()))
  for (const claiming of [claimAside, claimAndWait]) {
    yield* Effect.acquireRelease(loop(claiming), (fiber) =>
      fiber.interruptAsFork(fiber.id()).pipe(Effect.zipRight(fiber.await))
    )
  }
})

const logged = ({ endpointId, id }: ClaimedDelivery) => ({ deliveryId: id, endpointId })

const waitUntil = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (holds: boolean) => holds, schedule: Schedule.spaced("20 millis") })
  )
