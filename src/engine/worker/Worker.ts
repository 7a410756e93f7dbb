import { performance } from "node:perf_hooks"
import type { SqlError } from "@effect/sql"
import { Array, Cause, type Context, Duration, Effect, Exit, Layer, Option, Runtime, Schedule } from "effect"
import { turnOfEventLoop } from "../../platform/kit/Concurrency.ts"
import { Cipher } from "../../platform/kit/crypto/Cipher.ts"
import { observeMetrics } from "../../platform/telemetry/Metrics.ts"
import { type AttemptEnd, Attempts } from "../attempts/Attempts.ts"
import { Destinations } from "../attempts/Signing.ts"
import { type Claim, type ClaimedDelivery, DeliveryUnderLease, type QueuePlace, queueStart } from "../queue/Claim.ts"
import { type HandedDelivery, type LeasedDelivery, LocalHandOff, type Recipient } from "../queue/Enqueue.ts"
import { Queue } from "../queue/Queue.ts"
import { Signal, WakeUp } from "../queue/WakeUp.ts"
import { fewAtOnce } from "../transport/Connections.ts"
import { Transport } from "../transport/Transport.ts"
import { type Endpoint, Endpoints, gatherMillis, maxClaim, momentMillis, type WorkerOptions } from "./Endpoints.ts"
import { Recording } from "./Recording.ts"
import { LoopHealth, stuckAfterMillis, WorkerLife, type WorkerState } from "./WorkerLife.ts"

/**
 * How often a claim starts from the beginning of the queue, in milliseconds. That finds rows stored by a transaction that
 * took longer than the time a claim looks back, and rows that a dead worker had claimed. In between, claims need not step
 * over rows of endpoints that are set apart, nor over finished rows that PostgreSQL has not vacuumed yet: while `pg_dump`
 * runs, it can't. So the wait is also this multiple of the extra time that such claims take, up to the most.
 */
const restart = { everyMillis: 1000, costFactor: 200, mostMillis: 30_000 }

/** The longest pause of a loop that finds nothing, as a multiple of its usual one. */
const maxIdleFactor = 4

/** How long a delivery that was claimed but could not be begun waits. */
const notBegunDelay = Duration.seconds(1)

/** How long a delivery that can't be signed waits: that is for the operator to fix, not the consumer. */
const unsignableDelay = Duration.minutes(1)

const unanswered = "can't claim: the database does not answer"

interface Claimed {
  readonly found: number
  /** Whether more may be due than it reached: it filled the room, or looked at as many rows as it may. */
  readonly full: boolean
  /** How long to sleep if nothing happens. */
  readonly idleMillis: number
}

export interface WorkerServices {
  readonly queue: Context.Tag.Service<Queue>
  readonly transport: Context.Tag.Service<Transport>
  readonly cipher: Context.Tag.Service<Cipher>
  readonly wakeUp: Context.Tag.Service<WakeUp>
}

interface WorkerParts extends Pick<WorkerServices, "queue" | "wakeUp"> {
  readonly options: WorkerOptions
  readonly endpoints: Endpoints
  readonly destinations: Destinations
  readonly attempts: Attempts
  readonly runFork: (effect: Effect.Effect<void>) => void
}

/**
 * A delivery worker. There are two kinds of claim, each in a loop of its own, and both begin the attempts of what they
 * took.
 *
 * - **In the order of time**, the longest due first, while there is room.
 * - **Beside that order**: by name, for endpoints that the first leaves out because they are slow or stay at their cap (see
 *   `Endpoints`); and, while more is due than the first reaches, the newest, a few of each endpoint. So a delivery to an
 *   endpoint with nothing in flight starts at once, however many to others precede it.
 *
 * Deliveries stored by the same process are taken over without a claim while there is room. A third loop records
 * outcomes. Any number of workers share one queue: each skips rows that others have locked.
 */
export class Worker implements Recipient {
  readonly #parts: WorkerParts
  readonly recording: Recording
  readonly #health = {
    claims: new LoopHealth("starts"),
    recording: new LoopHealth("starts"),
    claimsBeside: new LoopHealth("starts")
  }
  /** Deliveries that are claimed, or being stored for this worker, and not yet recorded or released. */
  #held = 0
  /** When that last changed, by `performance.now()`. */
  #heldMovedAt = 0
  /** Places reserved for deliveries that are being stored. */
  #promised = 0
  /** Raised when something may be due, or when there may be room for it. */
  readonly #signal = new Signal()
  /** Raised when a claim need not wait for more room. */
  readonly #enough = new Signal()
  /** How many attempts must end until then. */
  #toEnd = 0
  /** Whether the last claim left due deliveries, for lack of room or because of an endpoint's cap. */
  #leftSome = false
  /** Whether more may be due than claims in the order of time have reached. */
  #behind = false
  #waitsForRoom = false
  /** Where these claims start: nothing before it is due, except of endpoints that are set apart. */
  #from: QueuePlace = queueStart
  /** When they start from the beginning of the queue again, and how long the last one that did not do so took. */
  #restartAt = 0
  #restartedAt = 0
  /** Whether something was announced since: it may have been due for long, as what a slow transaction stored. */
  #announced = false
  #usualMillis = Number.POSITIVE_INFINITY
  /** How much longer the last one took that did. */
  #extraMillis = 0
  #idleRounds = 0
  #passedOnAt = Number.NEGATIVE_INFINITY
  /** Raised when there may be something to claim beside the order of time. */
  readonly #workBeside = new Signal()
  /** Raised when something was announced that only a claim of the newest finds soon. */
  readonly #newest = new Signal()
  /** The earliest time of the next claim for slow endpoints, by `performance.now()`. */
  #slowNotBefore = 0
  #isStopping = false

  private constructor(parts: WorkerParts) {
    this.#parts = parts
    this.recording = new Recording(parts.queue, (count) => this.#settle(count), this.#health.recording)
  }

  /** Creates a worker that does nothing until its rounds run. When the scope closes, attempts in flight are interrupted. */
  static readonly make = Effect.fnUntraced(function* (options: WorkerOptions, services: WorkerServices) {
    const { cipher, queue, transport, wakeUp } = services
    const endpoints = new Endpoints(options)
    const destinations = new Destinations(queue, cipher)
    const runFork = Runtime.runFork(yield* Effect.runtime<never>())
    const attempts = yield* Attempts.make(
      options,
      endpoints,
      { transport, destinations },
      {
        onEnd: (delivery, endpoint, exit) => worker.#onEnd(delivery, endpoint, exit),
        onSlow: (waiting) => worker.#onSlow(waiting)
      }
    )
    const worker = new Worker({ options, queue, wakeUp, endpoints, destinations, attempts, runFork })
    return worker
  })

  get held(): number {
    return this.#held
  }

  get size(): number {
    return this.#parts.attempts.size
  }

  /**
   * How many more deliveries may be held, given the places for attempts and for records: recording must not hold up
   * sending.
   */
  get room(): number {
    const { attempts, options } = this.#parts
    const unrecorded = 5 * options.concurrency - (this.#held - attempts.aside)
    return Math.min(attempts.room - this.#promised, unrecorded, maxClaim)
  }

  /** Claims in the order of time once there is room, then waits until there is a reason to claim again. */
  readonly claimRound: Effect.Effect<void> = Effect.gen(this, function* () {
    const health = this.#health.claims
    yield* this.recording.caughtUp(health)
    if (this.room < 1) yield* this.#waitForRoom
    const claimed = yield* this.claim
    if (claimed === null) return
    const { found, full, idleMillis } = claimed
    if (full) health.begin("waits for room: as many attempts are under way as there may be", gatherMillis)
    else yield* this.#signal.wait(idleMillis)
    // If it found nothing although more is due, other workers have locked all rows that it looked at
    if (this.#toEnd > 0 || (full && found === 0)) yield* this.#enough.wait(gatherMillis)
  })

  /**
   * Claims beside the order of time once there may be something to claim, and pauses for as long as that took, or somewhat
   * longer. While the worker is behind, an announcement ends the pause after half of that time.
   */
  readonly claimBesideRound: Effect.Effect<void> = Effect.gen(this, function* () {
    const health = this.#health.claimsBeside
    health.rest("has nothing to claim beside the others")
    yield* this.#workBeside.wait()
    yield* this.recording.caughtUp(health)
    const isUrgent = this.#behind || this.#parts.endpoints.hasBusyApart
    const rest = isUrgent ? 0 : this.#slowNotBefore - performance.now()
    if (rest > 0) {
      health.begin("rests between claims beside the others", rest)
      yield* Effect.sleep(rest)
    }
    const claimedAt = performance.now()
    this.#newest.reset()
    const found = yield* this.#claimBeside
    const tookMillis = performance.now() - claimedAt
    const pause = found === 0 ? maxIdleFactor * gatherMillis : gatherMillis
    yield* Effect.sleep(tookMillis / 2)
    yield* this.#newest.wait(Math.max(pause, tookMillis) - tookMillis / 2)
  })

  /** Waits for an announcement, and wakes the loop whose claims find what was announced. */
  readonly listenRound: Effect.Effect<void> = Effect.gen(this, function* () {
    yield* this.#parts.wakeUp.await(() => this.room >= 1)
    this.#announced = true
    this.#signal.raise()
    if (this.#behind) this.#newest.raise()
    else this.#enough.raise()
  })

  readonly #waitForRoom = Effect.gen(this, function* () {
    const { options, wakeUp } = this.#parts
    this.#behind = true
    this.#workBeside.raise()
    this.#waitsForRoom = true
    if (performance.now() - this.#passedOnAt >= momentMillis) {
      this.#passedOnAt = performance.now()
      yield* wakeUp.announce
    }
    const millis = Duration.toMillis(options.pollInterval)
    while (this.room < 1) {
      this.#health.claims.begin("waits for room: as many attempts are under way as there may be", millis)
      yield* this.#signal.wait(millis)
    }
    this.#waitsForRoom = false
  })

  /**
   * Claims in the order of time and begins the attempts. Uninterruptible: a claim whose attempts do not follow would stay
   * leased until the lease expires. Null if the database does not answer, after a pause.
   */
  readonly claim: Effect.Effect<Claimed | null> = Effect.suspend(() => {
    const { endpoints, options, queue } = this.#parts
    const limit = Math.max(1, this.room)
    this.#health.claims.begin("claims")
    const claimedAt = performance.now()
    const isOnTime = claimedAt >= this.#restartAt
    const isRestart = isOnTime || (endpoints.leftOut && claimedAt >= this.#restartedAt + momentMillis)
    if (isRestart) {
      this.#from = queueStart
      this.#restartedAt = claimedAt
      this.#announced = false
      endpoints.lookFromStart()
    }
    const { counts, hides } = endpoints.beginClaim(claimedAt, this.#from)
    const wanted = { limit, lease: options.lease, from: this.#from, hides: hides && !isOnTime, ...counts }
    return Effect.flatMap(queue.claim(wanted), (claim) => {
      this.#noteCost(isRestart, performance.now() - claimedAt)
      // It stepped over rows of endpoints at their cap: starting later would lose those
      if (!hides) this.#from = claim.place
      const capped = endpoints.cappedBy(counts, claim.deliveries)
      return Effect.map(this.#begin(claim.deliveries, claimedAt), () => this.#noteLeft(claim, limit, capped, hides))
    }).pipe(Effect.tapError(() => Effect.sync(() => this.#health.claims.begin(unanswered))))
  }).pipe(Effect.uninterruptible, orRest)

  #noteCost(isRestart: boolean, tookMillis: number): void {
    if (!isRestart) this.#usualMillis = tookMillis
    else {
      const extraMillis = Math.max(0, tookMillis - this.#usualMillis)
      // The lesser of the last two: one may have been delayed by chance
      const forCost = restart.costFactor * Math.min(extraMillis, this.#extraMillis)
      this.#extraMillis = extraMillis
      this.#restartAt = performance.now() + Math.min(restart.mostMillis, Math.max(restart.everyMillis, forCost))
    }
  }

  /** Records what a claim left. If there is room for it by now, the next claim starts without waiting. */
  #noteLeft(
    { deliveries, more, nextDueInMillis }: Claim,
    limit: number,
    capped: ReadonlyArray<Endpoint>,
    hides: boolean
  ): Claimed {
    const { endpoints, options } = this.#parts
    const found = deliveries.length
    const full = found >= limit || more
    this.#behind = full
    this.#leftSome = full || hides || capped.length > 0
    const ahead = capped.reduce((sum, endpoint) => sum + Math.max(0, endpoint.held - endpoints.capOf(endpoint)), 0)
    this.#toEnd = Math.max(0, full ? Math.min(maxClaim, options.concurrency) / 2 - this.room : Math.floor(ahead / 2))
    this.#enough.reset()
    if (capped.some((endpoint) => endpoint.held < endpoints.capOf(endpoint))) this.#signal.raise()
    if (full || endpoints.hasApart) this.#workBeside.raise()
    const rests = found === 0 && this.#held === 0
    this.#idleRounds = rests ? Math.min(this.#idleRounds + 1, maxIdleFactor - 1) : 0
    const poll = Duration.toMillis(options.pollInterval) * (1 + this.#idleRounds)
    const now = performance.now()
    const restartAt = endpoints.leftOut ? this.#restartedAt + momentMillis : this.#restartAt
    const restartInMillis = endpoints.leftOut || this.#announced ? restartAt - now : poll
    const idleMillis = Math.min(poll, Math.max(1, Math.ceil(Math.min(nextDueInMillis ?? poll, restartInMillis))))
    if (!full) this.#health.claims.begin("waits for deliveries that come due", idleMillis)
    return { found, full, idleMillis }
  }

  /** Returns how many it took; null if the database does not answer. */
  readonly #claimBeside: Effect.Effect<number | null> = Effect.suspend(() => {
    const { attempts, endpoints, options, queue } = this.#parts
    const claimedAt = performance.now()
    const withSlow = claimedAt >= this.#slowNotBefore
    const askedFor = endpoints.askFor(claimedAt, withSlow)
    // The turn of the slow ones comes
    if (!withSlow || this.#behind) this.#workBeside.raise()
    const look = this.#behind ? "newest" : "asked"
    // First attempts get as many places again as there are, since they need none that is free
    const room = this.#behind ? Math.max(0, attempts.room + options.concurrency) : 0
    const limit = Math.min(
      maxClaim,
      askedFor.reduce((sum, { room }) => sum + room, room)
    )
    if (limit < 1) return Effect.succeed(0)
    this.#health.claimsBeside.begin("claims beside the others")
    return queue.claim({ look, limit, lease: options.lease, askedFor, ...endpoints.countsBeside(askedFor) }).pipe(
      Effect.flatMap((claim) => {
        if (withSlow) this.#slowNotBefore = performance.now() + momentMillis
        endpoints.noteAsked(askedFor, claim.askedFor)
        if (claim.deliveries.length > 0) this.#workBeside.raise()
        return Effect.as(this.#begin(claim.deliveries, claimedAt), claim.deliveries.length)
      })
    )
  }).pipe(Effect.uninterruptible, orRest)

  /**
   * Begins the deliveries claimed at `claimedAt` (by `performance.now()`); those of slow endpoints a few at a time, so that
   * the event loop gets to other work. Releases those that this process has already sent but not yet recorded, and all if
   * their destinations can't be read.
   */
  #begin(claimed: ReadonlyArray<ClaimedDelivery>, claimedAt: number): Effect.Effect<void> {
    const { attempts, destinations, endpoints, options } = this.#parts
    this.#hold(claimed.length)
    const sent = this.recording.unrecorded(claimed)
    const deliveries = sent.size === 0 ? claimed : claimed.filter(({ id }) => !sent.has(id))
    const giveBackSent = Effect.forEach(
      claimed.filter(({ id }) => sent.has(id)),
      (delivery) => {
        const next = sent.get(delivery.id)
        return this.#giveBack([delivery], next?.state === "queued" ? next.delay : notBegunDelay)
      },
      { discard: true }
    )
    const startBefore = claimedAt + Duration.toMillis(options.startWithin)
    const start = (some: ReadonlyArray<ClaimedDelivery>) => {
      for (const delivery of some) attempts.start(delivery, startBefore)
    }
    const startAll = Effect.suspend(() => {
      const [quick, slow] = Array.partition(deliveries, (delivery) => endpoints.of(delivery).slow !== null)
      start(quick)
      return Effect.forEach(
        slow.length === 0 ? [] : Array.chunksOf(slow, fewAtOnce),
        (some) =>
          Effect.zipRight(
            Effect.sync(() => start(some)),
            turnOfEventLoop
          ),
        { discard: true }
      )
    })
    const begin = Effect.matchEffect(destinations.load(deliveries), {
      onSuccess: () => startAll,
      onFailure: (error) =>
        Effect.zipRight(
          Effect.logWarning("The destinations of deliveries can't be read", error),
          this.#giveBack(deliveries, notBegunDelay)
        )
    })
    return sent.size === 0 ? begin : Effect.zipRight(giveBackSent, begin)
  }

  #hold(count: number): void {
    this.#held += count
    this.#heldMovedAt = performance.now()
  }

  /** Deliveries were recorded or released, or their leases are left to expire. */
  #settle(count: number): void {
    this.#hold(-count)
    this.#noteRoom()
  }

  #noteRoom(): void {
    if (this.#waitsForRoom ? this.room >= 1 : this.#leftSome) this.#signal.raise()
  }

  /** Releases deliveries without an attempt into the queue, due after the delay. */
  #giveBack(deliveries: ReadonlyArray<ClaimedDelivery>, delay: Duration.Duration): Effect.Effect<void> {
    return (deliveries.length === 0 ? Effect.void : this.#parts.queue.release(deliveries, delay)).pipe(
      Effect.catchAll((error) => Effect.logWarning("Deliveries could not be given back; their leases will end", error)),
      Effect.ensuring(
        Effect.sync(() => {
          this.#settle(deliveries.length)
          if (Duration.equals(delay, Duration.zero)) this.#signal.raise()
        })
      )
    )
  }

  #onEnd(delivery: ClaimedDelivery, endpoint: Endpoint, exit: Exit.Exit<AttemptEnd>): void {
    if (endpoint.from !== null) this.#workBeside.raise()
    if (this.#parts.endpoints.leftOut) this.#signal.raise()
    this.#toEnd -= 1
    if (this.#toEnd <= 0) this.#enough.raise()
    const { destinations, runFork } = this.#parts
    const annotated = Effect.annotateLogs({ deliveryId: delivery.id, endpointId: delivery.endpointId })
    if (Exit.isFailure(exit)) {
      this.#settle(1)
      runFork(annotated(Effect.logError("An attempt failed by a defect", exit.cause)))
    } else if (exit.value._tag === "Made") this.recording.add(exit.value)
    else if (exit.value._tag === "TooLate") runFork(this.#giveBack([delivery], Duration.zero))
    else {
      runFork(
        Effect.logError("A delivery can't be signed", exit.value.error).pipe(
          // Stored while its endpoint was being deleted: the housekeeping ends it
          Effect.unless(() => destinations.isDeleted(delivery)),
          Effect.zipRight(this.#giveBack([delivery], unsignableDelay)),
          annotated
        )
      )
    }
    this.#noteRoom()
  }

  #onSlow(waiting: ReadonlyArray<ClaimedDelivery>): void {
    if (waiting.length > 0) this.#parts.runFork(this.#giveBack(waiting, Duration.zero))
    this.#workBeside.raise()
    this.#noteRoom()
  }

  /** How long the leases of deliveries last that are handed over, in milliseconds. */
  get leaseMillis(): number {
    return Duration.toMillis(this.#parts.options.lease)
  }

  /**
   * Reserves a place by the rules of claims: as many as there is room for, and as many of an endpoint as its cap allows,
   * or some more if it keeps up; but none of slow endpoints, and while more is due than claims have reached, one of each
   * endpoint with nothing in flight.
   */
  reserve(delivery: HandedDelivery): boolean {
    const { endpoints, options } = this.#parts
    const endpoint = endpoints.of(delivery)
    // First attempts get as many places again as there are, as in claims of the newest
    const room = this.room + (endpoint.isIdle ? options.concurrency : 0)
    if (room < 1 || endpoint.slow !== null || (this.#behind && !endpoint.isIdle)) return false
    // Batches may wait here for their turn, as long as half of the places are left to other endpoints
    const most = endpoints.capOf(endpoint) + (room > options.concurrency / 2 ? endpoint.ahead : 0)
    if (endpoint.held + endpoint.promised >= most) return false
    endpoint.promised += 1
    this.#promised += 1
    // Counted as held from now on, so that a shutdown waits for the statement that stores it
    this.#hold(1)
    return true
  }

  release(delivery: HandedDelivery): void {
    this.#parts.endpoints.of(delivery).promised -= 1
    this.#promised -= 1
    this.#settle(1)
  }

  take(
    deliveries: ReadonlyArray<LeasedDelivery>,
    { id: lease, leasedAt, storedAt }: Parameters<Recipient["take"]>[1]
  ): void {
    const first = { attempt: 1, interrupted: 0, trigger: "automatic", createdAt: storedAt } as const
    const claim = { lease, claimedAt: storedAt }
    const claimed = deliveries.map((delivery) => new DeliveryUnderLease(delivery, delivery.secretIds, first, claim))
    // Places stay reserved until the attempts are counted: their destination may have to be loaded first
    const releaseAll = Effect.sync(() => {
      for (const delivery of deliveries) this.release(delivery)
    })
    this.#parts.runFork(Effect.ensuring(this.#begin(claimed, leasedAt), releaseAll))
  }

  /** Says from now on that it is stopping: its loops end, and attempts may take as long as the drain timeout allows. */
  stop(): void {
    this.#isStopping = true
  }

  /**
   * Drains a worker that no longer claims: releases attempts that have not begun, and lets those in flight end and be
   * recorded within the timeout. The rest come due again when their leases expire.
   */
  readonly drain: Effect.Effect<void> = Effect.suspend(() =>
    this.#giveBack(this.#parts.attempts.takeWaiting(), Duration.zero)
  ).pipe(
    Effect.zipRight(Effect.suspend(() => Effect.logInfo(`Shutdown: no more attempts begin; in flight: ${this.#held}`))),
    Effect.zipRight(
      Effect.repeat(
        Effect.sync(() => this.#held === 0),
        { until: (holds: boolean) => holds, schedule: Schedule.spaced("20 millis") }
      )
    ),
    // Finalizers are uninterruptible: without this, the timeout would have no effect
    Effect.interruptible,
    (waiting) => Effect.suspend(() => Effect.timeoutOption(waiting, this.#parts.options.drainTimeout)),
    Effect.flatMap(
      Option.match({
        onNone: () => Effect.logWarning(`${this.#held} attempts were in flight at shutdown; their leases will end`),
        onSome: () => Effect.logInfo("Shutdown: every attempt has ended and is recorded")
      })
    ),
    Effect.zipRight(Effect.sync(() => this.recording.close()))
  )

  /**
   * Its state at `now`, by `performance.now()`. Attempts that neither end nor are recorded long after their lease count
   * as stuck, like a loop.
   */
  stateAt(now: number): WorkerState {
    if (this.#isStopping) return { doing: "is stopping", isStuck: false, isStopping: true }
    const isStopping = false
    const { claims, claimsBeside, recording } = this.#health
    const stuck = [claims, recording, claimsBeside].find((health) => health.isStuck(now))
    if (stuck !== undefined) return { doing: `makes no progress: it ${stuck.doing}`, isStuck: true, isStopping }
    return recording.isResting && this.#held > 0 && now > this.#heldMovedAt + this.leaseMillis + stuckAfterMillis
      ? { doing: "makes no progress: attempts do not end", isStuck: true, isStopping }
      : { doing: claims.doing, isStuck: false, isStopping }
  }
}

const orRest = <A>(claim: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A | null> =>
  Effect.catchAll(claim, (error) =>
    Effect.logWarning("Deliveries can't be claimed", error).pipe(
      Effect.zipRight(Effect.sleep("1 second")),
      Effect.as(null)
    )
  )

/**
 * Runs a worker. On shutdown, it stops claiming, lets attempts in flight end, and records them. Attempts that it can't
 * record come due again when their leases expire: an event is delivered at least once, never lost.
 */
export const workerLayer = (
  options: WorkerOptions
): Layer.Layer<never, never, Queue | Transport | Cipher | WakeUp | LocalHandOff> =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const services = { queue: Queue, transport: Transport, cipher: Cipher, wakeUp: WakeUp }
      const worker = yield* Worker.make(options, yield* Effect.all(services))
      yield* observeMetrics((metrics) =>
        Effect.sync(() => {
          metrics.set("connected_payments.delivery.attempt.active", worker.size, [])
        })
      )
      yield* Effect.flatMap(
        Effect.serviceOption(WorkerLife),
        Option.match({
          onNone: () => Effect.void,
          onSome: ({ register }) => register((now) => worker.stateAt(now))
        })
      )
      // Finalizers run in reverse: claiming stops first, then attempts in flight end, then their outcomes are recorded.
      // Attempts still in flight after that are interrupted with the pool
      yield* Effect.acquireRelease(loop(worker.recording.round), (fiber) => fiber.interruptAsFork(fiber.id()))
      yield* Effect.addFinalizer(() => worker.drain)
      yield* (yield* LocalHandOff).register(worker)
      yield* Effect.acquireRelease(loop(worker.listenRound), (fiber) => fiber.interruptAsFork(fiber.id()))
      for (const round of [worker.claimBesideRound, worker.claimRound]) {
        yield* Effect.acquireRelease(loop(round), (fiber) =>
          fiber.interruptAsFork(fiber.id()).pipe(Effect.zipRight(fiber.await))
        )
      }
      yield* Effect.addFinalizer(() => Effect.sync(() => worker.stop()))
    })
  )

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
