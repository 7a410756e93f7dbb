import { performance } from "node:perf_hooks"
import { type Clock, type Context, Effect, Either, Exit, FiberSet, Scheduler, type Scope } from "effect"
import type { DecryptionFailed } from "../../platform/kit/crypto/Cipher.ts"
import { discardingTracer } from "../../platform/telemetry/Spans.ts"
import type { ClaimedDelivery } from "../queue/Claim.ts"
import { Deadlines } from "../transport/Connections.ts"
import { type DestinationSettings, destinationRules } from "../transport/DestinationUrl.ts"
import type { Transport } from "../transport/Transport.ts"
import {
  AttemptInFlight,
  type Endpoint,
  type Endpoints,
  momentMillis,
  placesAside,
  usualMost,
  type WorkerOptions
} from "../worker/Endpoints.ts"
import { type EndedAttempt, makeAttemptReports } from "./AttemptReports.ts"
import { type NextStep, nextStep } from "./Outcome.ts"
import { type Destinations, signatureHeaders } from "./Signing.ts"

export type AttemptsOptions = DestinationSettings & Pick<WorkerOptions, "concurrency" | "userAgent">

/** Receives the results of attempts. The methods return at once and don't throw. */
export interface AttemptsListener {
  /** An attempt has ended. If it failed by a bug, its outcome is unknown, and the lease will expire. */
  readonly onEnd: (delivery: ClaimedDelivery, endpoint: Endpoint, exit: Exit.Exit<AttemptEnd>) => void
  /** An endpoint has become slow: there may be room for others. Its `waiting` deliveries must be released. */
  readonly onSlow: (waiting: ReadonlyArray<ClaimedDelivery>) => void
}

/**
 * A worker's attempts in flight, and those waiting for a place; the fibers of a pool make them.
 *
 * `concurrency` bounds the young attempts: those keep the processor busy. An attempt that waits for its answer for
 * longer than `momentMillis` costs only a socket, so it gives up its place and continues *aside*, where there are
 * `placesAside` further places. Attempts that hang, to however many endpoints, therefore hold a place only for a
 * moment.
 */
export class Attempts {
  readonly #concurrency: number
  readonly #endpoints: Endpoints
  readonly #listener: AttemptsListener
  readonly #report: (attempt: EndedAttempt) => void
  readonly #pool: AttemptPool<AttemptInFlight, AttemptEnd>
  /** Deliveries waiting for any place, the longest wait first. */
  readonly #waiting: Array<AttemptInFlight> = []
  #size = 0
  /** Counts of attempts aside, and of attempts in flight that are not aside. */
  #aside = 0
  #inFlight = 0
  /** How many have begun in this turn of the event loop: no more than `usualMost` of endpoints with some in flight. */
  #begunInTurn = 0
  readonly #young = new Deadlines(momentMillis)

  private constructor(parts: AttemptsParts) {
    this.#concurrency = parts.concurrency
    this.#endpoints = parts.endpoints
    this.#listener = parts.listener
    this.#report = parts.report
    this.#pool = parts.pool
  }

  /**
   * Creates an instance with no attempts. Uses the calling fiber's clock, randomness, tracer, metrics and log. When the
   * scope closes, attempts in flight are interrupted without calling the listener.
   */
  static readonly make = Effect.fnUntraced(function* (
    settings: AttemptsOptions,
    endpoints: Endpoints,
    services: AttemptsServices,
    listener: AttemptsListener
  ) {
    const report = yield* makeAttemptReports
    const clock = yield* Effect.clock
    yield* Effect.addFinalizer(() => Effect.sync(() => attempts.#young.clear()))
    const pool = yield* AttemptPool.make<AttemptInFlight, AttemptEnd>({
      keep: settings.concurrency,
      make: makeAttempt({ ...services, settings, clock }),
      onEnd: (attempt, exit) => attempts.#finish(attempt, exit)
    })
    const attempts = new Attempts({ concurrency: settings.concurrency, endpoints, listener, report, pool })
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
   * How many more may be started: the free places, plus as many ahead as were delivered between the last claims. If
   * nothing is delivered, nothing is held that other workers could send.
   */
  get room(): number {
    return this.#concurrency + this.#endpoints.ahead - (this.#size - this.#aside)
  }

  /**
   * Makes an attempt, at once or as soon as there is room for it. Its destination must have been loaded. After
   * `startBefore` (by `performance.now()`) the attempt is no longer begun. Those of slow endpoints are aside.
   */
  start(delivery: ClaimedDelivery, startBefore: number): void {
    const endpoint = this.#endpoints.of(delivery)
    const attempt = new AttemptInFlight(delivery, endpoint, startBefore, this.#overdue)
    this.#size += 1
    if (attempt.aside) this.#aside += 1
    this.#endpoints.noteHeld(endpoint)
    this.#place(attempt)
  }

  /** Begins an attempt if there is a place; an endpoint's only one needs none, so that it never waits for others'. */
  #place(waiting: AttemptInFlight): void {
    const { aside, endpoint } = waiting
    if (endpoint.inFlight >= this.#endpoints.capOf(endpoint)) endpoint.waiting.push(waiting)
    else if (aside || endpoint.inFlight === 0 || this.#hasPlace) this.#begin(waiting)
    else this.#waiting.push(waiting)
  }

  get #hasPlace(): boolean {
    return this.#inFlight < this.#concurrency && this.#begunInTurn < usualMost
  }

  /** Removes and returns all waiting deliveries, or those to one endpoint; no attempt is made for them. */
  takeWaiting(of?: Endpoint): ReadonlyArray<ClaimedDelivery> {
    const all = this.#waiting.splice(0)
    const taken = of === undefined ? all : all.filter(({ endpoint }) => endpoint === of)
    if (taken.length < all.length) this.#waiting.push(...all.filter(({ endpoint }) => endpoint !== of))
    for (const endpoint of of === undefined ? this.#endpoints.active : [of]) taken.push(...endpoint.waiting.splice(0))
    this.#size -= taken.length
    for (const { aside, endpoint } of taken) {
      if (aside) this.#aside -= 1
      endpoint.held -= 1
    }
    return taken.map(({ delivery }) => delivery)
  }

  #begin(attempt: AttemptInFlight): void {
    attempt.endpoint.inFlight += 1
    if (!attempt.aside) this.#inFlight += 1
    if (this.#begunInTurn === 0) setImmediate(this.#nextTurn)
    this.#begunInTurn += 1
    attempt.begunAt = performance.now()
    this.#young.add(attempt)
    this.#pool.run(attempt)
  }

  #finish(attempt: AttemptInFlight, exit: Exit.Exit<AttemptEnd>): void {
    const { delivery, endpoint } = attempt
    const made = Exit.isSuccess(exit) && exit.value._tag === "Made" ? exit.value : null
    try {
      if (made !== null) {
        this.#report(made)
        if (made.next.state === "delivered") this.#endpoints.noteDelivered(endpoint)
      }
      this.#end(attempt, made?.outcome.errorCode === "timeout")
      this.#listener.onEnd(delivery, endpoint, exit)
    } catch (defect) {
      // A bug must not keep the place from other attempts
      this.#end(attempt, false)
      this.#listener.onEnd(delivery, endpoint, Exit.die(defect))
    }
  }

  readonly #overdue = (attempt: AttemptInFlight): void => {
    if (attempt.ended) return
    const { endpoint } = attempt
    attempt.overdue = true
    if (!attempt.aside && this.#aside < placesAside) {
      attempt.aside = true
      this.#inFlight -= 1
      this.#aside += 1
    }
    this.#endpoints.noteOverdue(endpoint, performance.now())
    this.#listener.onSlow(this.takeWaiting(endpoint))
    this.#goOn()
  }

  #end(attempt: AttemptInFlight, timedOut: boolean): void {
    if (attempt.ended) return
    attempt.ended = true
    this.#young.delete(attempt)
    const { endpoint } = attempt
    this.#size -= 1
    if (attempt.aside) this.#aside -= 1
    else this.#inFlight -= 1
    endpoint.held -= 1
    endpoint.inFlight -= 1
    this.#endpoints.noteEnded(endpoint, attempt.overdue, performance.now() - attempt.begunAt, timedOut)
    // Its waiting deliveries move to the queue for any place, as far as its cap allows
    const room = Math.max(0, this.#endpoints.capOf(endpoint) - endpoint.inFlight)
    for (const next of endpoint.waiting.splice(0, room)) {
      if (next.aside) this.#place(next)
      else this.#waiting.push(next)
    }
    this.#goOn()
  }

  /** Begins those that wait for any place; as many in a turn of the event loop as leave it time for other work. */
  #goOn(): void {
    while (this.#hasPlace) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      this.#place(next)
    }
  }

  readonly #nextTurn = (): void => {
    this.#begunInTurn = 0
    this.#goOn()
  }
}

interface AttemptsParts {
  readonly concurrency: number
  readonly endpoints: Endpoints
  readonly listener: AttemptsListener
  readonly report: (attempt: EndedAttempt) => void
  readonly pool: AttemptPool<AttemptInFlight, AttemptEnd>
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
