/**
 * Attempts in flight, as plain callbacks: a fiber for each would cost a quarter of the rate, a fiber and a span half of
 * it. The worker starts attempts here and takes from here what has ended.
 *
 * `concurrency` bounds the attempts that are young: those keep the processor busy. One that waits for its answer for
 * longer than `slowAfterMillis` costs a socket and no more, so it gives its place up and goes on *aside*, of which there
 * are `placesAside` more. So attempts that hang, of however many endpoints, hold a place for a moment only.
 */
import { performance } from "node:perf_hooks"
import { Clock, type Context, Effect, Either, Runtime } from "effect"
import { type DestinationSettings, destinationRules } from "../../endpoints/Endpoints.ts"
import type { DecryptionFailed } from "../../kit/Cipher.ts"
import type { EndpointId, OrganizationId } from "../../kit/Ids.ts"
import type { AttemptOutcome } from "../Attempt.ts"
import { nextStep } from "../StateMachine.ts"
import { makeAttemptReports } from "./AttemptReports.ts"
import type { EndedAttempt } from "./AttemptSpans.ts"
import type { ClaimedDelivery } from "./Claim.ts"
import { Deadlines } from "./Deadlines.ts"
import type { Destinations } from "./Destinations.ts"
import { EndpointPace, slowAfterMillis } from "./EndpointPace.ts"
import type { FinishedAttempt } from "./FinishedAttempt.ts"
import { Sent, type SentAttempts } from "./Sent.ts"
import { firstAttempts, mostMovedAside, mostToSlow } from "./Shares.ts"
import { signatureHeader, signatureHeaderName } from "./Signature.ts"
import type { Transport } from "./Transport.ts"

export interface AttemptsOptions extends DestinationSettings {
  /** Attempts in flight that are not aside; what is started beyond waits here for its turn. */
  readonly concurrency: number
  /** Attempts in flight per endpoint at most, likewise. */
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
  /** A bug: what the attempt came to is unknown, and its lease will end. */
  readonly onDefect: (delivery: ClaimedDelivery, defect: unknown) => void
  /** An endpoint has become a slow one: there may be room for others. What waited for it here is to be given back. */
  readonly onSlow: (waiting: ReadonlyArray<ClaimedDelivery>) => void
  /** An endpoint is slow no more. */
  readonly onQuickAgain: () => void
}

/** A delivery that waits for its endpoint to have room. */
interface Waiting {
  readonly delivery: ClaimedDelivery
  readonly startBefore: number
  readonly aside: boolean
}

/** What is under way to one endpoint. */
interface Lane {
  readonly organizationId: OrganizationId
  /** Those in flight and those that wait. */
  held: number
  inFlight: number
  /** Those in flight that have not been answered quickly. */
  overdue: number
  /** Attempts that were answered 2xx since `takeCounts`. */
  delivered: number
  /** Those that wait for this endpoint's cap; while there are any, some of its attempts are in flight or about to be. */
  readonly waiting: Array<Waiting>
}

/** How much more of an endpoint's deliveries than its cap may be held, as a multiple of it. */
const maxAhead = 4

/** The attempts of one worker that are in flight, or wait for their endpoint to have room. */
export class Attempts implements SentAttempts {
  readonly #lanes = new Map<EndpointId, Lane>()
  /** Those that wait for any place, the longest first. */
  readonly #waiting: Array<Waiting> = []
  #size = 0
  /** Those aside, and those not. */
  #aside = 0
  #inFlight = 0
  /** Attempts that were answered 2xx since `takeCounts`, and in the time between the two calls before. */
  #delivered = 0
  #deliveredBefore = 0
  readonly #sent = new Set<Sent>()
  readonly #young = new Deadlines(slowAfterMillis)
  /** How quickly endpoints answer. */
  readonly pace: EndpointPace
  readonly #options: AttemptsOptions
  readonly #transport: Context.Tag.Service<Transport>
  readonly #destinations: Destinations
  readonly #listener: AttemptsListener
  readonly #runtime: Runtime.Runtime<never>
  readonly #clock: Clock.Clock
  readonly #report: (attempt: EndedAttempt) => void

  private constructor(
    options: AttemptsOptions,
    services: { readonly transport: Context.Tag.Service<Transport>; readonly destinations: Destinations },
    listener: AttemptsListener,
    environment: {
      readonly runtime: Runtime.Runtime<never>
      readonly clock: Clock.Clock
      readonly report: (attempt: EndedAttempt) => void
    }
  ) {
    this.#options = options
    this.pace = new EndpointPace({ cap: options.concurrencyPerEndpoint, first: firstAttempts(options) })
    this.#transport = services.transport
    this.#destinations = services.destinations
    this.#listener = listener
    this.#runtime = environment.runtime
    this.#clock = environment.clock
    this.#report = environment.report
  }

  /** None in flight yet; clock, randomness, tracer, metrics and log are those of the calling fiber. */
  static readonly make = (
    options: AttemptsOptions,
    services: { readonly transport: Context.Tag.Service<Transport>; readonly destinations: Destinations },
    listener: AttemptsListener
  ): Effect.Effect<Attempts> =>
    Effect.map(
      Effect.all({
        runtime: Effect.runtime<never>(),
        clock: Clock.clockWith(Effect.succeed),
        report: makeAttemptReports
      }),
      (environment) => new Attempts(options, services, listener, environment)
    )

  /** How many there are, those that wait included. */
  get size(): number {
    return this.#size
  }

  /** How many of them are aside. */
  get aside(): number {
    return this.#aside
  }

  /**
   * How many more may be started: the places that are free, and as many ahead as were delivered between the last claims,
   * at most as many as there are places. Where nothing is delivered nothing is held that others could send.
   */
  get room(): number {
    const ahead = Math.min(Math.max(this.#delivered, this.#deliveredBefore), this.#options.concurrency)
    return this.#options.concurrency + ahead - (this.#size - this.#aside)
  }

  /** How many there are to an endpoint, those that wait included. */
  held(endpointId: EndpointId): number {
    return this.#lanes.get(endpointId)?.held ?? 0
  }

  /** How many there are to each endpoint that has any. */
  *lanes(): Generator<readonly [EndpointId, { readonly held: number; readonly organizationId: OrganizationId }]> {
    for (const entry of this.#lanes) if (entry[1].held > 0) yield entry
  }

  /** The attempts at once that each endpoint is given to which there are any. */
  caps(): ReadonlyMap<EndpointId, number> {
    const caps = new Map<EndpointId, number>()
    for (const endpointId of this.#lanes.keys()) caps.set(endpointId, this.capOf(endpointId))
    return caps
  }

  /** The attempts at once that an endpoint is given. A slow one's share is the claims' to bound. */
  capOf(endpointId: EndpointId): number {
    return this.pace.isSlow(endpointId) ? mostToSlow(this.#options) : this.pace.allowed(endpointId)
  }

  /**
   * How many a claim has to reckon with, by endpoint: those that are held, less as many as were delivered since the call
   * before. So an endpoint that keeps up gets as many ahead as it takes while a claim is under way, and is not held up
   * by the database; one that hangs gets none.
   */
  takeCounts(): ReadonlyMap<EndpointId, number> {
    const counts = new Map<EndpointId, number>()
    this.#deliveredBefore = this.#delivered
    this.#delivered = 0
    for (const [endpointId, lane] of this.#lanes) {
      const ahead = Math.min(lane.delivered, maxAhead * this.#options.concurrencyPerEndpoint)
      lane.delivered = 0
      if (lane.held > 0 || ahead > 0) counts.set(endpointId, lane.held - ahead)
      if (lane.held === 0) this.#lanes.delete(endpointId)
    }
    return counts
  }

  /**
   * Makes an attempt, at once or when its endpoint has room for it. Its destination has been loaded. After `startBefore`
   * (by `performance.now()`) it is not begun any more. `aside`: it takes no place of the `concurrency`.
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
    this.#place({ delivery, startBefore, aside }, lane)
  }

  #place(waiting: Waiting, lane: Lane): void {
    if (lane.inFlight >= this.capOf(waiting.delivery.endpointId)) lane.waiting.push(waiting)
    else if (!waiting.aside && this.#inFlight >= this.#options.concurrency) this.#waiting.push(waiting)
    else this.#begin(waiting, lane)
  }

  /** Takes back those that wait: of them no attempt is made. */
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

  #begin({ aside, delivery, startBefore }: Waiting, lane: Lane): void {
    lane.inFlight += 1
    if (!aside) this.#inFlight += 1
    const sent = new Sent(this, delivery, this.#clock.unsafeCurrentTimeMillis(), aside)
    try {
      // After a pause of the machine the lease may be about to end: then another worker's attempt would meet ours
      if (performance.now() > startBefore) {
        this.#ended(sent)
        this.#listener.onTooLate(delivery)
        return
      }
      const destination = this.#destinations.of(delivery)
      if (Either.isLeft(destination)) {
        this.#ended(sent)
        this.#listener.onUnsignable(delivery, destination.left)
      } else {
        this.#send(sent, destination.right)
      }
    } catch (defect) {
      this.#broken(sent, defect)
    }
  }

  /** Breaks all of them off; nobody is told of what they come to. */
  abandonAll(): void {
    for (const sent of this.#sent) {
      this.#young.delete(sent)
      sent.abandon?.()
    }
    this.#sent.clear()
  }

  #send(sent: Sent, { secrets, url }: Either.Either.Right<ReturnType<Destinations["of"]>>): void {
    const { delivery } = sent
    const timestamp = Math.floor(sent.startedAt / 1000)
    const request = {
      url,
      body: delivery.payload,
      headers: {
        "content-type": "application/json",
        "user-agent": this.#options.userAgent,
        "service-delivery-id": delivery.id,
        [signatureHeaderName]: signatureHeader({ timestamp, body: delivery.payload, secrets })
      },
      ...destinationRules(this.#options, delivery)
    }
    sent.url = url
    this.#sent.add(sent)
    this.#young.add(sent)
    sent.abandon = this.#transport.send(request, sent)
  }

  /** For `Sent` alone: an attempt came to this. */
  finish(sent: Sent, outcome: AttemptOutcome): void {
    this.#sent.delete(sent)
    this.#young.delete(sent)
    this.#finish(sent, outcome)
  }

  /** For `Sent` alone: an attempt met a bug. */
  break(sent: Sent, defect: unknown): void {
    this.#broken(sent, defect)
  }

  /** For `Sent` alone: an attempt is not answered quickly. */
  overdue(sent: Sent): void {
    const { endpointId, organizationId } = sent.delivery
    const lane = this.#lanes.get(endpointId)
    if (lane === undefined || !this.#sent.has(sent)) return
    sent.overdue = true
    lane.overdue += 1
    if (!sent.aside && this.#aside < mostMovedAside) {
      sent.aside = true
      this.#inFlight -= 1
      this.#aside += 1
    }
    this.pace.noteSlow(endpointId, organizationId, performance.now())
    this.#listener.onSlow(this.#takeWaitingFor(endpointId, lane))
    this.#goOn()
  }

  #finish(sent: Sent, outcome: AttemptOutcome): void {
    const { delivery, startedAt, url } = sent
    try {
      // The common case needs no randomness, so no effect
      const next =
        outcome.errorCode === null
          ? ({ state: "delivered" } as const)
          : Runtime.runSync(this.#runtime)(nextStep(delivery, outcome))
      this.#report({ delivery, url, startedAt, outcome, next })
      const lane = this.#lanes.get(delivery.endpointId)
      if (lane !== undefined && next.state === "delivered") {
        lane.delivered += 1
        this.#delivered += 1
      }
      this.#ended(sent)
      this.#listener.onFinished({ delivery, startedAt, outcome, next })
    } catch (defect) {
      this.#broken(sent, defect)
    }
  }

  /** A bug must not take the place of the other deliveries. */
  #broken(sent: Sent, defect: unknown): void {
    this.#sent.delete(sent)
    this.#young.delete(sent)
    this.#ended(sent)
    this.#listener.onDefect(sent.delivery, defect)
  }

  #ended(sent: Sent): void {
    const { endpointId } = sent.delivery
    this.#size -= 1
    if (sent.aside) this.#aside -= 1
    else this.#inFlight -= 1
    const lane = this.#lanes.get(endpointId)
    if (lane !== undefined) {
      lane.held -= 1
      lane.inFlight -= 1
      if (sent.overdue) {
        lane.overdue -= 1
        this.pace.noteEnded(endpointId, performance.now() - sent.begunAt)
      } else if (lane.overdue === 0 && this.pace.noteQuick(endpointId)) this.#listener.onQuickAgain()
      this.#takeNext(endpointId, lane)
    }
    this.#goOn()
  }

  /** Those that waited for this endpoint's room wait for any place now, as many as there is room for. */
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
