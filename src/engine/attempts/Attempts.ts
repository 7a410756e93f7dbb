import { performance } from "node:perf_hooks"
import { Cause, type Clock, type Context, Effect, Either, Exit, FiberSet, Scheduler, type Scope } from "effect"
import type { DecryptionFailed } from "../../platform/kit/Cipher.ts"
import type { EndpointId, OrganizationId } from "../../platform/kit/Ids.ts"
import { discardingTracer } from "../../platform/telemetry/Spans.ts"
import type { ClaimedDelivery } from "../queue/Claim.ts"
import type { FinishedAttempt } from "../queue/Queue.ts"
import { Deadlines, Expiring } from "../transport/Connections.ts"
import { type DestinationSettings, destinationRules } from "../transport/DestinationUrl.ts"
import type { Transport } from "../transport/Transport.ts"
import {
  EndpointPace,
  firstAttempts,
  mostMovedAside,
  mostToSlow,
  slowAfterMillis,
  usualCap,
  type WorkerOptions
} from "../worker/Limits.ts"
import { type EndedAttempt, makeAttemptReports } from "./AttemptReports.ts"
import { type NextStep, nextStep } from "./Outcome.ts"
import { type Destinations, signatureHeaders } from "./Signing.ts"

/**
 * Tracks attempts in flight and those waiting for a place. The worker starts attempts here and collects the finished
 * ones; the fibers of a pool make them.
 *
 * `concurrency` bounds the young attempts: those keep the processor busy. An attempt that waits for its answer for
 * longer than `slowAfterMillis` costs only a socket, so it gives up its place and continues *aside*, where there are
 * `placesAside` further places. Attempts that hang, to however many endpoints, therefore hold a place only for a
 * moment.
 */

/** Attempts beyond the two limits wait here for their turn. */
export interface AttemptsOptions
  extends DestinationSettings,
    Pick<WorkerOptions, "concurrency" | "concurrencyPerEndpoint" | "userAgent"> {}

/** Receives the results of attempts. The methods return at once and don't throw. */
export interface AttemptsListener {
  /** An attempt was made and must be recorded. */
  readonly onFinished: (attempt: FinishedAttempt) => void
  /** No attempt was made: the delivery can't be signed. */
  readonly onUnsignable: (delivery: ClaimedDelivery, error: DecryptionFailed) => void
  /** No attempt was made: its `startBefore` had passed. */
  readonly onTooLate: (delivery: ClaimedDelivery) => void
  /** A bug: the attempt's outcome is unknown, and the lease will expire. */
  readonly onDefect: (delivery: ClaimedDelivery, cause: Cause.Cause<never>) => void
  /** An endpoint has become slow: there may be room for others. Its `waiting` deliveries must be released. */
  readonly onSlow: (waiting: ReadonlyArray<ClaimedDelivery>) => void
  /** An endpoint is no longer slow. */
  readonly onQuickAgain: () => void
}

/** One endpoint's attempts, in flight and waiting. */
interface Lane {
  readonly organizationId: OrganizationId
  /** Attempts in flight plus those waiting. */
  held: number
  inFlight: number
  /** Attempts in flight for longer than `slowAfterMillis`. */
  overdue: number
  /** Attempts answered 2xx since the last `takeCounts`. */
  delivered: number
  /**
   * Deliveries held back by this endpoint's cap; while there are any, some of its attempts are in flight or about to
   * be.
   */
  readonly waiting: Array<AttemptInFlight>
}

/** The most deliveries held beyond an endpoint's cap, as a multiple of the usual cap. */
const maxAhead = 4

/**
 * An endpoint that keeps up may hold ahead this multiple of what it was delivered since the previous claim: more than
 * 1, so that claims become larger and fewer while there is enough to claim.
 */
const aheadFactor = 2

/** One worker's attempts: in flight, or waiting for room. */
export class Attempts {
  readonly #lanes = new Map<EndpointId, Lane>()
  /** Deliveries waiting for any place, the longest wait first. */
  readonly #waiting: Array<AttemptInFlight> = []
  #size = 0
  /** Counts of attempts aside, and of attempts in flight that are not aside. */
  #aside = 0
  #inFlight = 0
  /** Attempts answered 2xx since the last `takeCounts`, and between its two previous calls. */
  #delivered = 0
  #deliveredBefore = 0
  readonly #young = new Deadlines(slowAfterMillis)
  readonly pace: EndpointPace
  readonly #options: AttemptsOptions
  readonly #listener: AttemptsListener
  readonly #report: (attempt: EndedAttempt) => void
  readonly #pool: AttemptPool<AttemptInFlight, AttemptEnd>

  private constructor(
    options: AttemptsOptions,
    listener: AttemptsListener,
    report: (attempt: EndedAttempt) => void,
    pool: AttemptPool<AttemptInFlight, AttemptEnd>
  ) {
    this.#options = options
    this.pace = new EndpointPace({ cap: options.concurrencyPerEndpoint, first: firstAttempts(options) })
    this.#listener = listener
    this.#report = report
    this.#pool = pool
  }

  /**
   * Creates an instance with no attempts. Uses the calling fiber's clock, randomness, tracer, metrics and log. When the
   * scope closes, attempts in flight are interrupted without calling the listener.
   */
  static readonly make = Effect.fnUntraced(function* (
    options: AttemptsOptions,
    services: AttemptsServices,
    listener: AttemptsListener
  ) {
    const report = yield* makeAttemptReports
    const clock = yield* Effect.clock
    yield* Effect.addFinalizer(() => Effect.sync(() => attempts.#young.clear()))
    const pool = yield* AttemptPool.make<AttemptInFlight, AttemptEnd>({
      keep: options.concurrency,
      make: makeAttempt({ ...services, settings: options, clock }),
      onEnd: (attempt, exit) => attempts.#finish(attempt, exit)
    })
    const attempts = new Attempts(options, listener, report, pool)
    return attempts
  })

  /** Attempts in flight and waiting. */
  get size(): number {
    return this.#size
  }

  /** Attempts aside, in flight and waiting. */
  get aside(): number {
    return this.#aside
  }

  /**
   * How many more may be started: the free places, plus as many ahead as were delivered between the last claims, at
   * most `concurrency`. If nothing is delivered, nothing is held that other workers could send.
   */
  get room(): number {
    const ahead = Math.min(Math.max(this.#delivered, this.#deliveredBefore), this.#options.concurrency)
    return this.#options.concurrency + ahead - (this.#size - this.#aside)
  }

  /** Attempts to an endpoint, in flight and waiting. */
  held(endpointId: EndpointId): number {
    return this.#lanes.get(endpointId)?.held ?? 0
  }

  /** The endpoints that have attempts here, with how many. */
  *lanes(): Generator<readonly [EndpointId, { readonly held: number; readonly organizationId: OrganizationId }]> {
    for (const entry of this.#lanes) if (entry[1].held > 0) yield entry
  }

  /** The concurrency caps of these endpoints; by default, of all that have attempts here. */
  caps(endpointIds: Iterable<EndpointId> = this.#lanes.keys()): ReadonlyMap<EndpointId, number> {
    const caps = new Map<EndpointId, number>()
    for (const endpointId of endpointIds) caps.set(endpointId, this.capOf(endpointId))
    return caps
  }

  /** The concurrency cap of an endpoint. Claims limit a slow one further, to its share. */
  capOf(endpointId: EndpointId): number {
    return this.pace.isSlow(endpointId) ? mostToSlow(this.#options) : this.pace.allowed(endpointId)
  }

  /**
   * How many of an endpoint's deliveries may be held, in flight and waiting. One that keeps up gets more than its cap,
   * since this process stores deliveries in batches. If it turns slow, the waiting ones are released.
   */
  mayHold(endpointId: EndpointId): number {
    const lane = this.#lanes.get(endpointId)
    return this.capOf(endpointId) + (lane === undefined ? 0 : this.#aheadOf(lane))
  }

  #aheadOf({ delivered }: Lane): number {
    return Math.min(aheadFactor * delivered, maxAhead * usualCap(this.#options))
  }

  /**
   * The counts for a claim, by endpoint: attempts held, less a multiple of those delivered since the previous call. An
   * endpoint that keeps up thus gets more ahead than it takes while a claim is running, and is not held up by the
   * database. Slow endpoints are left out: there may be hundreds, and they are claimed separately.
   */
  takeCounts(): ReadonlyMap<EndpointId, number> {
    const counts = new Map<EndpointId, number>()
    this.#deliveredBefore = this.#delivered
    this.#delivered = 0
    for (const [endpointId, lane] of this.#lanes) {
      const ahead = this.#aheadOf(lane)
      lane.delivered = 0
      if ((lane.held > 0 || ahead > 0) && !this.pace.isSlow(endpointId)) counts.set(endpointId, lane.held - ahead)
      if (lane.held === 0) this.#lanes.delete(endpointId)
    }
    return counts
  }

  /**
   * Makes an attempt, at once or as soon as there is room for it. Its destination must have been loaded. After
   * `startBefore` (by `performance.now()`) the attempt is no longer begun. With `aside`, it takes none of the
   * `concurrency` places.
   */
  start(delivery: ClaimedDelivery, startBefore: number, aside = false): void {
    this.#size += 1
    if (aside) this.#aside += 1
    const { endpointId, organizationId } = delivery
    let lane = this.#lanes.get(endpointId)
    if (lane === undefined) {
      lane = { organizationId, held: 0, inFlight: 0, overdue: 0, delivered: 0, waiting: [] }
      this.#lanes.set(endpointId, lane)
    }
    lane.held += 1
    this.#place(new AttemptInFlight(delivery, startBefore, aside, this.#overdue), lane)
  }

  #place(waiting: AttemptInFlight, lane: Lane): void {
    if (lane.inFlight >= this.capOf(waiting.delivery.endpointId)) lane.waiting.push(waiting)
    else if (!waiting.aside && this.#inFlight >= this.#options.concurrency) this.#waiting.push(waiting)
    else this.#begin(waiting, lane)
  }

  /** Removes and returns all waiting deliveries; no attempt is made for them. */
  takeWaiting(): ReadonlyArray<ClaimedDelivery> {
    const waiting = [...this.#waiting.splice(0), ...[...this.#lanes.values()].flatMap((lane) => lane.waiting.splice(0))]
    return this.#takeBack(waiting)
  }

  #takeWaitingFor(endpointId: EndpointId, lane: Lane): ReadonlyArray<ClaimedDelivery> {
    const others: Array<AttemptInFlight> = []
    const waiting = lane.waiting.splice(0)
    for (const one of this.#waiting.splice(0)) (one.delivery.endpointId === endpointId ? waiting : others).push(one)
    this.#waiting.push(...others)
    return this.#takeBack(waiting)
  }

  #takeBack(waiting: ReadonlyArray<AttemptInFlight>): ReadonlyArray<ClaimedDelivery> {
    this.#size -= waiting.length
    for (const { aside, delivery } of waiting) {
      if (aside) this.#aside -= 1
      const lane = this.#lanes.get(delivery.endpointId)
      if (lane !== undefined) lane.held -= 1
    }
    return waiting.map(({ delivery }) => delivery)
  }

  #begin(waiting: AttemptInFlight, lane: Lane): void {
    lane.inFlight += 1
    if (!waiting.aside) this.#inFlight += 1
    waiting.begunAt = performance.now()
    this.#young.add(waiting)
    this.#pool.run(waiting)
  }

  #finish(attempt: AttemptInFlight, exit: Exit.Exit<AttemptEnd>): void {
    try {
      if (Exit.isFailure(exit)) this.#break(attempt, exit.cause)
      else if (exit.value._tag === "Made") this.#made(attempt, exit.value)
      else this.#notMade(attempt, exit.value)
    } catch (defect) {
      this.#break(attempt, Cause.die(defect))
    }
  }

  #made(attempt: AttemptInFlight, ended: EndedAttempt): void {
    this.#report(ended)
    this.#noteDelivered(ended)
    this.#end(attempt, ended.outcome.errorCode === "timeout")
    this.#listener.onFinished(ended)
  }

  #notMade(attempt: AttemptInFlight, end: Exclude<AttemptEnd, { readonly _tag: "Made" }>): void {
    this.#end(attempt)
    if (end._tag === "TooLate") this.#listener.onTooLate(attempt.delivery)
    else this.#listener.onUnsignable(attempt.delivery, end.error)
  }

  /** A bug must not keep the place from other attempts. */
  #break(attempt: AttemptInFlight, cause: Cause.Cause<never>): void {
    this.#end(attempt)
    this.#listener.onDefect(attempt.delivery, cause)
  }

  #noteDelivered({ delivery, next }: FinishedAttempt): void {
    const lane = this.#lanes.get(delivery.endpointId)
    if (lane === undefined || next.state !== "delivered") return
    lane.delivered += 1
    this.#delivered += 1
  }

  readonly #overdue = (attempt: AttemptInFlight): void => {
    const { endpointId, organizationId } = attempt.delivery
    const lane = this.#lanes.get(endpointId)
    if (lane === undefined || attempt.ended) return
    attempt.overdue = true
    lane.overdue += 1
    if (!attempt.aside && this.#aside < mostMovedAside) {
      attempt.aside = true
      this.#inFlight -= 1
      this.#aside += 1
    }
    this.pace.noteSlow(endpointId, organizationId, performance.now())
    this.#listener.onSlow(this.#takeWaitingFor(endpointId, lane))
    this.#goOn()
  }

  /** Frees the attempt's place. */
  #end(attempt: AttemptInFlight, timedOut = false): void {
    if (attempt.ended) return
    attempt.ended = true
    this.#young.delete(attempt)
    const { endpointId } = attempt.delivery
    this.#size -= 1
    if (attempt.aside) this.#aside -= 1
    else this.#inFlight -= 1
    const lane = this.#lanes.get(endpointId)
    if (lane !== undefined) {
      lane.held -= 1
      lane.inFlight -= 1
      const tookMillis = performance.now() - attempt.begunAt
      if (attempt.overdue) {
        lane.overdue -= 1
        this.pace.noteEnded(endpointId, tookMillis, timedOut)
      } else if (lane.overdue === 0 && this.pace.noteQuick(endpointId, tookMillis)) this.#listener.onQuickAgain()
      this.#takeNext(endpointId, lane)
    }
    this.#goOn()
  }

  /** Moves this endpoint's waiting deliveries, as far as its cap allows, to the queue for any place. */
  #takeNext(endpointId: EndpointId, lane: Lane): void {
    const room = this.capOf(endpointId) - lane.inFlight
    for (const next of lane.waiting.splice(0, Math.max(0, room))) {
      if (next.aside) this.#place(next, lane)
      else this.#waiting.push(next)
    }
  }

  #goOn(): void {
    while (this.#inFlight < this.#options.concurrency) {
      const next = this.#waiting.shift()
      const lane = next === undefined ? undefined : this.#lanes.get(next.delivery.endpointId)
      if (next === undefined || lane === undefined) return
      this.#place(next, lane)
    }
  }
}

/** An attempt, waiting for its place or in flight. */
export class AttemptInFlight extends Expiring {
  readonly delivery: ClaimedDelivery
  /** The time after which it is no longer sent, by `performance.now()`. */
  readonly startBefore: number
  /** Whether it takes a place aside. */
  aside: boolean
  /** When it began, by `performance.now()`; 0 while it waits. */
  begunAt = 0
  /** Whether it has waited for its answer for longer than `slowAfterMillis`. */
  overdue = false
  /** Whether it has ended, and freed its place. */
  ended = false
  readonly #onOverdue: (attempt: AttemptInFlight) => void

  constructor(
    delivery: ClaimedDelivery,
    startBefore: number,
    aside: boolean,
    onOverdue: (attempt: AttemptInFlight) => void
  ) {
    super()
    this.delivery = delivery
    this.startBefore = startBefore
    this.aside = aside
    this.#onOverdue = onOverdue
  }

  expire(): void {
    // If this process was busy, the answer may already have arrived: let it be read first
    setImmediate(this.#onOverdue, this)
  }
}

export interface AttemptsServices {
  readonly transport: Context.Tag.Service<Transport>
  readonly destinations: Destinations
}

interface AttemptParts extends AttemptsServices {
  readonly settings: DestinationSettings & { readonly userAgent: string }
  /** The fiber's clock, read without an effect. */
  readonly clock: Clock.Clock
}

export type AttemptEnd =
  | (EndedAttempt & { readonly _tag: "Made" })
  /** No attempt was made: its `startBefore` had passed. */
  | { readonly _tag: "TooLate" }
  /** No attempt was made: the delivery can't be signed. */
  | { readonly _tag: "Unsignable"; readonly error: DecryptionFailed }

const tooLate: AttemptEnd = { _tag: "TooLate" }

/** The step after a success, which needs no retry policy. */
const delivered: NextStep = { state: "delivered" }

/**
 * Makes one attempt: signs, sends, and asks the retry policy's `Schedule` for the next step. Its destination must have
 * been loaded.
 */
export const makeAttempt =
  ({ clock, destinations, settings, transport }: AttemptParts) =>
  ({ delivery, startBefore }: AttemptInFlight): Effect.Effect<AttemptEnd> => {
    // After a pause of the machine, the lease may be about to expire: another worker's attempt could then overlap with
    // this one
    if (performance.now() > startBefore) return Effect.succeed(tooLate)
    const destination = destinations.of(delivery)
    if (Either.isLeft(destination)) return Effect.succeed({ _tag: "Unsignable", error: destination.left })
    const { secrets, url } = destination.right
    const startedAt = clock.unsafeCurrentTimeMillis()
    const timestamp = Math.floor(startedAt / 1000)
    const request = {
      url,
      body: delivery.payload,
      headers: {
        "content-type": "application/json",
        "user-agent": settings.userAgent,
        "service-delivery-id": delivery.id,
        ...signatureHeaders({ eventId: delivery.eventId, timestamp, body: delivery.payload, secrets })
      },
      ...destinationRules(settings, delivery)
    }
    return Effect.flatMap(transport.send(request), (outcome): Effect.Effect<AttemptEnd> => {
      const made = (next: NextStep): AttemptEnd => ({ _tag: "Made", delivery, url, startedAt, outcome, next })
      return outcome.errorCode === null
        ? Effect.succeed(made(delivered))
        : Effect.map(nextStep(delivery, outcome), made)
    })
  }

/** Options of an `AttemptPool`. */
export interface AttemptPoolOptions<Attempt, End> {
  /** How many idle fibers are kept. */
  readonly keep: number
  /** Makes one attempt. A defect ends the attempt, not its fiber. */
  readonly make: (attempt: Attempt) => Effect.Effect<End>
  /** Called once for each attempt, unless the pool is closed first. Returns at once and doesn't throw. */
  readonly onEnd: (attempt: Attempt, exit: Exit.Exit<End>) => void
}

/**
 * A supervised pool of long-lived fibers, each of which makes one attempt after another. There are as many as were ever
 * needed at once; `keep` idle ones remain. They end with the scope, which interrupts their attempts.
 *
 * An attempt is handed over directly: to the fiber whose attempt has just ended, to an idle one, or to a new one.
 * Effect's `Queue` between them, or a fork for each attempt, costs twice as much.
 */
export class AttemptPool<Attempt, End> {
  readonly #options: AttemptPoolOptions<Attempt, End>
  readonly #fork: (fiber: Effect.Effect<void>) => void
  readonly #idle: Array<(attempt: Effect.Effect<Attempt>) => void> = []
  /** Whether a fiber's attempt is just ending, and that fiber's next attempt. */
  #ending = false
  #next: Attempt | null = null

  private constructor(options: AttemptPoolOptions<Attempt, End>, fork: (fiber: Effect.Effect<void>) => void) {
    this.#options = options
    this.#fork = fork
  }

  /** Creates an empty pool. Its fibers have the calling fiber's clock and randomness, and make no spans themselves. */
  static readonly make = <Attempt, End>(
    options: AttemptPoolOptions<Attempt, End>
  ): Effect.Effect<AttemptPool<Attempt, End>, never, Scope.Scope> =>
    Effect.map(
      FiberSet.makeRuntime<never, void>(),
      (fork) => new AttemptPool(options, (fiber) => void fork(inPool(fiber)))
    )

  /** Makes an attempt on a fiber of the pool. Returns at once. */
  run(attempt: Attempt): void {
    if (this.#ending && this.#next === null) {
      this.#next = attempt
      return
    }
    const hand = this.#idle.pop()
    if (hand === undefined) this.#fork(this.#fiber(attempt))
    else hand(Effect.succeed(attempt))
  }

  /** A fiber that makes this attempt first. Everything that it repeats is created here, once. */
  #fiber(first: Attempt): Effect.Effect<void> {
    let attempt = first
    const end = (exit: Exit.Exit<End>): Effect.Effect<void> => {
      this.#ending = true
      this.#options.onEnd(attempt, exit)
      this.#ending = false
      return Effect.void
    }
    const succeeded = (value: End) => end(Exit.succeed(value))
    const live = (one: Attempt): Effect.Effect<void> => {
      attempt = one
      return Effect.flatMap(this.#begin(one), succeeded)
    }
    const idling = Effect.flatMap(
      Effect.async<Attempt>((resume) => void this.#idle.push(resume)),
      live
    )
    const round = (): Effect.Effect<void> => {
      const next = this.#next
      this.#next = null
      return next === null ? idling : live(next)
    }
    // Not `Effect.forever`, which yields to other fibers in each round: an attempt's exchange does so anyway
    const rounds = Effect.whileLoop({
      while: () => this.#next !== null || this.#idle.length < this.#options.keep,
      body: round,
      step: () => {}
    })
    // Around the loop, not around each attempt, which would cost as much as all the rest
    const goingOn = (work: Effect.Effect<void>): Effect.Effect<void> =>
      Effect.catchAllCause(work, (cause) => Effect.zipRight(end(Exit.failCause(cause)), goingOn(rounds)))
    return goingOn(
      Effect.zipRight(
        Effect.suspend(() => live(first)),
        rounds
      )
    )
  }

  #begin(attempt: Attempt): Effect.Effect<End> {
    try {
      return this.#options.make(attempt)
    } catch (defect) {
      return Effect.die(defect)
    }
  }
}

const mixed = new Scheduler.MixedScheduler(2048)

/**
 * Effect's default scheduler, but with one queue for all fibers of pools: fibers resumed while one event is handled
 * continue together. Effect itself has a queue and a microtask for each fiber, in a table that keeps the queues of
 * ended fibers until a full garbage collection.
 */
export const sharedScheduler: Scheduler.Scheduler = Scheduler.make(
  (task, priority) => mixed.scheduleTask(task, priority),
  mixed.shouldYield
)

const inPool = (fiber: Effect.Effect<void>): Effect.Effect<void> =>
  fiber.pipe(
    Effect.withTracerEnabled(false),
    Effect.withTracer(discardingTracer),
    Effect.withScheduler(sharedScheduler)
  )
