/**
 * Attempts in flight, as plain callbacks: a fiber for each would cost a quarter of the rate, a fiber and a span half of
 * it. The worker starts attempts here and takes from here what has ended.
 */
import { performance } from "node:perf_hooks"
import { Clock, type Context, Effect, Either, Runtime } from "effect"
import { localDestinationsAllowed } from "../endpoints/Endpoints.ts"
import type { DecryptionFailed } from "../kit/Cipher.ts"
import type { EndpointId } from "../kit/Ids.ts"
import type { AttemptOutcome } from "./Attempt.ts"
import { makeAttemptReports } from "./AttemptReports.ts"
import type { EndedAttempt } from "./AttemptSpans.ts"
import type { ClaimedDelivery } from "./Claim.ts"
import type { Destinations } from "./Destinations.ts"
import type { FinishedAttempt } from "./Queue.ts"
import { signatureHeader, signatureHeaderName } from "./Signature.ts"
import { nextStep } from "./StateMachine.ts"
import type { OutcomeReceiver, Transport } from "./Transport.ts"

export interface AttemptsOptions {
  /** Attempts in flight; what is started beyond waits here for its turn. */
  readonly concurrency: number
  /** Attempts in flight per endpoint, likewise. */
  readonly concurrencyPerEndpoint: number
  readonly allowLocalDestinations: boolean
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
}

/** A delivery that waits for its endpoint to have room. */
interface Waiting {
  readonly delivery: ClaimedDelivery
  readonly startBefore: number
}

/** What is under way to one endpoint. */
interface Lane {
  /** Those in flight and those that wait. */
  held: number
  inFlight: number
  /** Attempts that were answered 2xx since `takeCounts`. */
  delivered: number
  /** Those that wait for this endpoint's cap; while there are any, some of its attempts are in flight or about to be. */
  readonly waiting: Array<Waiting>
}

/** How much more of an endpoint's deliveries than its cap may be held, as a multiple of it. */
const maxAhead = 4

/** The attempts of one worker that are in flight, or wait for their endpoint to have room. */
export class Attempts {
  readonly #lanes = new Map<EndpointId, Lane>()
  /** Those that wait for any place, the longest first. */
  readonly #waiting: Array<Waiting> = []
  #size = 0
  #inFlight = 0
  /** Attempts that were answered 2xx since `takeCounts`, and in the time between the two calls before. */
  #delivered = 0
  #pace = 0
  readonly #sent = new Set<Sent>()
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

  /**
   * How many more may be started: the places that are free, and as many ahead as were delivered between the last claims,
   * at most as many as there are places. Where nothing is delivered nothing is held that others could send.
   */
  get room(): number {
    const ahead = Math.min(Math.max(this.#delivered, this.#pace), this.#options.concurrency)
    return this.#options.concurrency + ahead - this.#size
  }

  /** How many there are to an endpoint, those that wait included. */
  held(endpointId: EndpointId): number {
    return this.#lanes.get(endpointId)?.held ?? 0
  }

  /**
   * How many a claim has to reckon with, by endpoint: those that are held, less as many as were delivered since the call
   * before. So an endpoint that keeps up gets as many ahead as it takes while a claim is under way, and is not held up
   * by the database; one that hangs gets none.
   */
  takeCounts(): ReadonlyMap<EndpointId, number> {
    const counts = new Map<EndpointId, number>()
    this.#pace = this.#delivered
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
   * (by `performance.now()`) it is not begun any more.
   */
  start(delivery: ClaimedDelivery, startBefore: number): void {
    this.#size += 1
    const lane = this.#lanes.get(delivery.endpointId) ?? { held: 0, inFlight: 0, delivered: 0, waiting: [] }
    lane.held += 1
    this.#lanes.set(delivery.endpointId, lane)
    this.#place({ delivery, startBefore }, lane)
  }

  #place(waiting: Waiting, lane: Lane): void {
    if (lane.inFlight >= this.#options.concurrencyPerEndpoint) lane.waiting.push(waiting)
    else if (this.#inFlight >= this.#options.concurrency) this.#waiting.push(waiting)
    else this.#begin(waiting, lane)
  }

  /** Takes back those that wait: of them no attempt is made. */
  takeWaiting(): ReadonlyArray<ClaimedDelivery> {
    const waiting = [...this.#waiting.splice(0), ...[...this.#lanes.values()].flatMap((lane) => lane.waiting.splice(0))]
    this.#size -= waiting.length
    for (const { delivery } of waiting) {
      const lane = this.#lanes.get(delivery.endpointId)
      if (lane !== undefined) lane.held -= 1
    }
    return waiting.map(({ delivery }) => delivery)
  }

  #begin({ delivery, startBefore }: Waiting, lane: Lane): void {
    lane.inFlight += 1
    this.#inFlight += 1
    try {
      // After a pause of the machine the lease may be about to end: then another worker's attempt would meet ours
      if (performance.now() > startBefore) {
        this.#ended(delivery.endpointId)
        this.#listener.onTooLate(delivery)
        return
      }
      const destination = this.#destinations.of(delivery)
      if (Either.isLeft(destination)) {
        this.#ended(delivery.endpointId)
        this.#listener.onUnsignable(delivery, destination.left)
      } else {
        this.#send(delivery, destination.right)
      }
    } catch (defect) {
      this.#broken(delivery, defect)
    }
  }

  /** Breaks all of them off; nobody is told of what they come to. */
  abandonAll(): void {
    for (const { abandon } of this.#sent) abandon?.()
    this.#sent.clear()
  }

  #send(delivery: ClaimedDelivery, { secrets, url }: Either.Either.Right<ReturnType<Destinations["of"]>>): void {
    const startedAt = this.#clock.unsafeCurrentTimeMillis()
    const timestamp = Math.floor(startedAt / 1000)
    const request = {
      url,
      body: delivery.payload,
      headers: {
        "content-type": "application/json",
        "user-agent": this.#options.userAgent,
        "service-delivery-id": delivery.id,
        [signatureHeaderName]: signatureHeader({ timestamp, body: delivery.payload, secrets })
      },
      allowLocal: localDestinationsAllowed(this.#options, delivery)
    }
    const sent = new Sent(this, delivery, url, startedAt)
    this.#sent.add(sent)
    sent.abandon = this.#transport.send(request, sent)
  }

  /** For `Sent` alone: an attempt came to this. */
  finish(sent: Sent, outcome: AttemptOutcome): void {
    this.#sent.delete(sent)
    this.#finish(sent, outcome)
  }

  /** For `Sent` alone: an attempt met a bug. */
  break(sent: Sent, defect: unknown): void {
    this.#sent.delete(sent)
    this.#broken(sent.delivery, defect)
  }

  #finish({ delivery, startedAt, url }: Sent, outcome: AttemptOutcome): void {
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
      this.#ended(delivery.endpointId)
      this.#listener.onFinished({ delivery, startedAt, outcome, next })
    } catch (defect) {
      this.#broken(delivery, defect)
    }
  }

  /** A bug must not take the place of the other deliveries. */
  #broken(delivery: ClaimedDelivery, defect: unknown): void {
    this.#ended(delivery.endpointId)
    this.#listener.onDefect(delivery, defect)
  }

  #ended(endpointId: EndpointId): void {
    this.#size -= 1
    this.#inFlight -= 1
    const ended = this.#lanes.get(endpointId)
    if (ended !== undefined) {
      ended.held -= 1
      ended.inFlight -= 1
      const next = ended.waiting.shift()
      if (next !== undefined) this.#waiting.push(next)
    }
    while (this.#inFlight < this.#options.concurrency) {
      const next = this.#waiting.shift()
      const lane = next === undefined ? undefined : this.#lanes.get(next.delivery.endpointId)
      if (next === undefined || lane === undefined) return
      this.#place(next, lane)
    }
  }
}

/** An attempt in flight. A class, since there are very many: of closures each would be an object of its own. */
class Sent implements OutcomeReceiver {
  readonly #attempts: Attempts
  readonly delivery: ClaimedDelivery
  readonly url: string
  readonly startedAt: number
  abandon: (() => void) | null = null

  constructor(attempts: Attempts, delivery: ClaimedDelivery, url: string, startedAt: number) {
    this.#attempts = attempts
    this.delivery = delivery
    this.url = url
    this.startedAt = startedAt
  }

  onOutcome(outcome: AttemptOutcome): void {
    this.#attempts.finish(this, outcome)
  }

  onDefect(defect: unknown): void {
    this.#attempts.break(this, defect)
  }
}
