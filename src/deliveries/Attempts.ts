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
import type { Transport } from "./Transport.ts"

export interface AttemptsOptions {
  /** Attempts in flight per endpoint; what is started beyond waits here for its turn. */
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
  inFlight: number
  /** Attempts that were answered 2xx since `takeCounts`. */
  delivered: number
  readonly waiting: Array<Waiting>
}

/** How much more of an endpoint's deliveries than its cap may be held, as a multiple of it. */
const maxAhead = 4

/** The attempts of one worker that are in flight, or wait for their endpoint to have room. */
export class Attempts {
  readonly #lanes = new Map<EndpointId, Lane>()
  #size = 0
  readonly #abandons = new Set<() => void>()
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

  /** How many there are to an endpoint, those that wait included. */
  held(endpointId: EndpointId): number {
    const lane = this.#lanes.get(endpointId)
    return lane === undefined ? 0 : lane.inFlight + lane.waiting.length
  }

  /**
   * How many a claim has to reckon with, by endpoint: those that are held, less as many as were delivered since the call
   * before. So an endpoint that keeps up gets as many ahead as it takes while a claim is under way, and is not held up
   * by the database; one that hangs gets none.
   */
  takeCounts(): ReadonlyMap<EndpointId, number> {
    const counts = new Map<EndpointId, number>()
    for (const [endpointId, lane] of this.#lanes) {
      const ahead = Math.min(lane.delivered, maxAhead * this.#options.concurrencyPerEndpoint)
      lane.delivered = 0
      const held = lane.inFlight + lane.waiting.length
      if (held > 0 || ahead > 0) counts.set(endpointId, held - ahead)
      if (held === 0) this.#lanes.delete(endpointId)
    }
    return counts
  }

  /**
   * Makes an attempt, at once or when its endpoint has room for it. Its destination has been loaded. After `startBefore`
   * (by `performance.now()`) it is not begun any more.
   */
  start(delivery: ClaimedDelivery, startBefore: number): void {
    this.#size += 1
    const lane = this.#lanes.get(delivery.endpointId) ?? { inFlight: 0, delivered: 0, waiting: [] }
    this.#lanes.set(delivery.endpointId, lane)
    if (lane.inFlight < this.#options.concurrencyPerEndpoint) this.#begin({ delivery, startBefore }, lane)
    else lane.waiting.push({ delivery, startBefore })
  }

  /** Takes back those that wait: of them no attempt is made. */
  takeWaiting(): ReadonlyArray<ClaimedDelivery> {
    const waiting = [...this.#lanes.values()].flatMap((lane) => lane.waiting.splice(0))
    this.#size -= waiting.length
    return waiting.map(({ delivery }) => delivery)
  }

  #begin({ delivery, startBefore }: Waiting, lane: Lane): void {
    lane.inFlight += 1
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
    for (const abandon of this.#abandons) abandon()
    this.#abandons.clear()
  }

  #send(delivery: ClaimedDelivery, { secrets, url }: Either.Either.Right<ReturnType<Destinations["of"]>>): void {
    const startedAt = this.#clock.unsafeCurrentTimeMillis()
    const timestamp = Math.floor(startedAt / 1000)
    let abandon: (() => void) | null = null
    let over = false
    const end = () => {
      over = true
      if (abandon !== null) this.#abandons.delete(abandon)
    }
    abandon = this.#transport.send(
      {
        url,
        body: delivery.payload,
        headers: {
          "content-type": "application/json",
          "user-agent": this.#options.userAgent,
          "service-delivery-id": delivery.id,
          [signatureHeaderName]: signatureHeader({ timestamp, body: delivery.payload, secrets })
        },
        allowLocal: localDestinationsAllowed(this.#options, delivery)
      },
      {
        onOutcome: (outcome) => {
          end()
          this.#finish(delivery, startedAt, outcome)
        },
        onDefect: (defect) => {
          end()
          this.#broken(delivery, defect)
        }
      }
    )
    if (!over) this.#abandons.add(abandon)
  }

  #finish(delivery: ClaimedDelivery, startedAt: number, outcome: AttemptOutcome): void {
    try {
      // The common case needs no randomness, so no effect
      const next =
        outcome.errorCode === null
          ? ({ state: "delivered" } as const)
          : Runtime.runSync(this.#runtime)(nextStep(delivery, outcome))
      this.#report({ delivery, startedAt, outcome, next })
      const lane = this.#lanes.get(delivery.endpointId)
      if (lane !== undefined && next.state === "delivered") lane.delivered += 1
      this.#ended(delivery.endpointId)
      this.#listener.onFinished({ delivery, startedAt: new Date(startedAt), outcome, next })
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
    const lane = this.#lanes.get(endpointId)
    if (lane === undefined) return
    lane.inFlight -= 1
    const next = lane.waiting.shift()
    if (next !== undefined) this.#begin(next, lane)
  }
}
