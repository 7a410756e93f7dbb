/**
 * Which attempts are in flight, and which wait for a place. The worker starts attempts here and takes from here what
 * has ended; fibers of a pool make them.
 *
 * `concurrency` bounds the attempts that are young: those keep the processor busy. One that waits for its answer for
 * longer than `slowAfterMillis` costs no more than a socket, so it gives up its place and goes on *aside*, where there
 * are `placesAside` further places. So attempts that hang, of however many endpoints, hold a place only for a moment.
 */
import { performance } from "node:perf_hooks"
import { Cause, type Context, Effect, Exit } from "effect"
import type { DestinationSettings } from "../../endpoints/Endpoints.ts"
import type { DecryptionFailed } from "../../kit/Cipher.ts"
import type { EndpointId, OrganizationId } from "../../kit/Ids.ts"
import { AttemptInFlight } from "./AttemptInFlight.ts"
import { AttemptPool } from "./AttemptPool.ts"
import { makeAttemptReports } from "./AttemptReports.ts"
import type { EndedAttempt } from "./AttemptSpans.ts"
import type { ClaimedDelivery } from "./Claim.ts"
import { Deadlines } from "./Deadlines.ts"
import type { Destinations } from "./Destinations.ts"
import { EndpointPace, slowAfterMillis } from "./EndpointPace.ts"
import type { FinishedAttempt } from "./FinishedAttempt.ts"
import { type AttemptEnd, makeAttempt } from "./MakeAttempt.ts"
import { firstAttempts, mostMovedAside, mostToSlow, usualCap } from "./Shares.ts"
import type { Transport } from "./Transport.ts"

export interface AttemptsOptions extends DestinationSettings {
  /** Attempts in flight that are not aside; what is started beyond that waits here for its turn. */
  readonly concurrency: number
  /** The most attempts in flight per endpoint, likewise. */
  readonly concurrencyPerEndpoint: number
  readonly userAgent: string
}

/** What becomes of attempts. The methods return at once and don't throw. */
export interface AttemptsListener {
  /** An attempt was made; it is to be recorded. */
  readonly onFinished: (attempt: FinishedAttempt) => void
  /** No attempt was made: the delivery can't be signed. */
  readonly onUnsignable: (delivery: ClaimedDelivery, error: DecryptionFailed) => void
  /** No attempt was made: its turn came too late. */
  readonly onTooLate: (delivery: ClaimedDelivery) => void
  /** A bug: how the attempt ended is unknown, and the lease will run out. */
  readonly onDefect: (delivery: ClaimedDelivery, cause: Cause.Cause<never>) => void
  /** An endpoint has become slow: there may be room for others. What waited for it here is to be given back. */
  readonly onSlow: (waiting: ReadonlyArray<ClaimedDelivery>) => void
  /** An endpoint is no longer slow. */
  readonly onQuickAgain: () => void
}

export interface AttemptsServices {
  readonly transport: Context.Tag.Service<Transport>
  readonly destinations: Destinations
}

/** A delivery that waits until its endpoint has room. A class for the same reason as an exchange's parameters. */
class Waiting {
  readonly delivery: ClaimedDelivery
  readonly startBefore: number
  readonly aside: boolean

  constructor(delivery: ClaimedDelivery, startBefore: number, aside: boolean) {
    this.delivery = delivery
    this.startBefore = startBefore
    this.aside = aside
  }
}

/** What is under way to one endpoint. */
interface Lane {
  readonly organizationId: OrganizationId
  /** Those in flight and those waiting. */
  held: number
  inFlight: number
  /** Those in flight that have not been answered quickly. */
  overdue: number
  /** Attempts that were answered 2xx since `takeCounts`. */
  delivered: number
  /** Those held back by this endpoint's cap; while there are any, some of its attempts are in flight or about to be. */
  readonly waiting: Array<Waiting>
}

/** How many more of an endpoint's deliveries than its cap may be held, as a multiple of the usual cap. */
const maxAhead = 4

/**
 * An endpoint that keeps up gets this many times as many ahead as were delivered since the previous claim: more than once,
 * so that claims become larger and fewer while there is enough for them.
 */
const aheadFactor = 2

/** The attempts of one worker that are in flight or wait until their endpoint has room. */
export class Attempts {
  readonly #lanes = new Map<EndpointId, Lane>()
  /** Those that wait for any place, the longest wait first. */
  readonly #waiting: Array<Waiting> = []
  #size = 0
  /** Those aside, and those not. */
  #aside = 0
  #inFlight = 0
  /** Attempts that were answered 2xx since `takeCounts`, and between its two previous calls. */
  #delivered = 0
  #deliveredBefore = 0
  readonly #young = new Deadlines(slowAfterMillis)
  readonly pace: EndpointPace
  readonly #options: AttemptsOptions
  readonly #listener: AttemptsListener
  readonly #report: (attempt: EndedAttempt) => void
  readonly #pool: AttemptPool<AttemptInFlight, AttemptEnd>
  /** Those whose exchange is under way, in any order. */
  readonly #sent: Array<AttemptInFlight> = []

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
   * Creates an instance with none in flight; clock, randomness, tracer, metrics and log are the calling fiber's. What
   * is in flight when the scope ends is broken off, and the listener is not called.
   */
  static readonly make = Effect.fnUntraced(function* (
    options: AttemptsOptions,
    services: AttemptsServices,
    listener: AttemptsListener
  ) {
    const report = yield* makeAttemptReports
    const clock = yield* Effect.clock
    yield* Effect.addFinalizer(() => Effect.sync(() => attempts.#abandonAll()))
    const pool = yield* AttemptPool.make<AttemptInFlight, AttemptEnd>({
      keep: options.concurrency,
      make: makeAttempt({ ...services, settings: options, clock }, (attempt) => attempts.#onSent(attempt)),
      onEnd: (attempt, exit) => attempts.#finish(attempt, exit)
    })
    const attempts = new Attempts(options, listener, report, pool)
    return attempts
  })

  /** How many there are, including those that wait. */
  get size(): number {
    return this.#size
  }

  /** How many of them are aside. */
  get aside(): number {
    return this.#aside
  }

  /**
   * How many more may be started: the free places, plus as many ahead as were delivered between the last claims, but no
   * more than there are places. If nothing is delivered, nothing is held that others could send.
   */
  get room(): number {
    const ahead = Math.min(Math.max(this.#delivered, this.#deliveredBefore), this.#options.concurrency)
    return this.#options.concurrency + ahead - (this.#size - this.#aside)
  }

  /** How many there are to an endpoint, including those that wait. */
  held(endpointId: EndpointId): number {
    return this.#lanes.get(endpointId)?.held ?? 0
  }

  /** How many there are to each endpoint that has any. */
  *lanes(): Generator<readonly [EndpointId, { readonly held: number; readonly organizationId: OrganizationId }]> {
    for (const entry of this.#lanes) if (entry[1].held > 0) yield entry
  }

  /** How many attempts at once are allowed to each of these endpoints; by default, to each that has any here. */
  caps(endpointIds: Iterable<EndpointId> = this.#lanes.keys()): ReadonlyMap<EndpointId, number> {
    const caps = new Map<EndpointId, number>()
    for (const endpointId of endpointIds) caps.set(endpointId, this.capOf(endpointId))
    return caps
  }

  /** How many attempts at once are allowed to an endpoint. The claims limit a slow one to its share. */
  capOf(endpointId: EndpointId): number {
    return this.pace.isSlow(endpointId) ? mostToSlow(this.#options) : this.pace.allowed(endpointId)
  }

  /**
   * How many of an endpoint's deliveries may be held, in flight and waiting: one that keeps up gets more than are sent at
   * once, since what this process stores comes in batches. If it turns slow, what waits is given back.
   */
  mayHold(endpointId: EndpointId): number {
    const lane = this.#lanes.get(endpointId)
    return this.capOf(endpointId) + (lane === undefined ? 0 : this.#aheadOf(lane))
  }

  #aheadOf({ delivered }: Lane): number {
    return Math.min(aheadFactor * delivered, maxAhead * usualCap(this.#options))
  }

  /**
   * How many a claim has to count, by endpoint: those that are held, less a multiple of those delivered since the previous
   * call. So an endpoint that keeps up gets more ahead than it takes while a claim is under way, and is not held up by
   * the database. Slow ones are left out: there may be hundreds, and they are claimed apart.
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
   * Makes an attempt, at once or as soon as its endpoint has room for it. Its destination has been loaded. After
   * `startBefore` (by `performance.now()`) it is no longer begun. `aside`: it takes no place of the `concurrency`.
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
    this.#place(new Waiting(delivery, startBefore, aside), lane)
  }

  #place(waiting: Waiting, lane: Lane): void {
    if (lane.inFlight >= this.capOf(waiting.delivery.endpointId)) lane.waiting.push(waiting)
    else if (!waiting.aside && this.#inFlight >= this.#options.concurrency) this.#waiting.push(waiting)
    else this.#begin(waiting, lane)
  }

  /** Takes back those that wait: no attempt of theirs is made. */
  takeWaiting(): ReadonlyArray<ClaimedDelivery> {
    const waiting = [...this.#waiting.splice(0), ...[...this.#lanes.values()].flatMap((lane) => lane.waiting.splice(0))]
    return this.#takeBack(waiting)
  }

  #takeWaitingFor(endpointId: EndpointId, lane: Lane): ReadonlyArray<ClaimedDelivery> {
    const others: Array<Waiting> = []
    const waiting = lane.waiting.splice(0)
    for (const one of this.#waiting.splice(0)) (one.delivery.endpointId === endpointId ? waiting : others).push(one)
    this.#waiting.push(...others)
    return this.#takeBack(waiting)
  }

  #takeBack(waiting: ReadonlyArray<Waiting>): ReadonlyArray<ClaimedDelivery> {
    this.#size -= waiting.length
    for (const { aside, delivery } of waiting) {
      if (aside) this.#aside -= 1
      const lane = this.#lanes.get(delivery.endpointId)
      if (lane !== undefined) lane.held -= 1
    }
    return waiting.map(({ delivery }) => delivery)
  }

  #begin(waiting: Waiting, lane: Lane): void {
    lane.inFlight += 1
    if (!waiting.aside) this.#inFlight += 1
    this.#pool.run(new AttemptInFlight(waiting, this.#overdue))
  }

  #onSent(attempt: AttemptInFlight): void {
    attempt.place = this.#sent.push(attempt) - 1
    this.#young.add(attempt)
  }

  #notSent(attempt: AttemptInFlight): void {
    if (attempt.place < 0) return
    const last = this.#sent.pop()
    if (last !== undefined && last !== attempt) {
      this.#sent[attempt.place] = last
      last.place = attempt.place
    }
    attempt.place = -1
  }

  #abandonAll(): void {
    for (const attempt of this.#sent.splice(0)) {
      attempt.place = -1
      this.#young.delete(attempt)
      attempt.abandon?.()
    }
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
    this.#notSent(attempt)
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

  /** Lets as many as there is room for, of those that waited for this endpoint, wait for any place now. */
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
