/**
 * Attempts in flight, as plain callbacks: a fiber for each would cost a quarter of the rate, a fiber and a span half of
 * it. The worker starts attempts here and takes from here what has ended.
 */
import { Clock, type Context, Effect, Either, Runtime, type Tracer } from "effect"
import { localDestinationsAllowed } from "../endpoints/Endpoints.ts"
import type { DecryptionFailed } from "../kit/Cipher.ts"
import type { EndpointId } from "../kit/Ids.ts"
import type { AttemptOutcome } from "./Attempt.ts"
import { attemptSpans, type EndedAttempt } from "./AttemptSpans.ts"
import type { Destinations } from "./Destinations.ts"
import type { ClaimedDelivery, FinishedAttempt } from "./Queue.ts"
import { signatureHeader, signatureHeaderName } from "./Signature.ts"
import { nextStep } from "./StateMachine.ts"
import type { Transport } from "./Transport.ts"

export interface AttemptsOptions {
  readonly allowLocalDestinations: boolean
  readonly userAgent: string
}

/** What becomes of attempts. The methods return at once and don't throw. */
export interface AttemptsListener {
  /** An attempt was made; it is to be recorded. */
  readonly onFinished: (attempt: FinishedAttempt) => void
  /** No attempt was made: the delivery can't be signed. */
  readonly onUnsignable: (delivery: ClaimedDelivery, error: DecryptionFailed) => void
  /** A bug: what the attempt came to is unknown, and its lease will end. */
  readonly onDefect: (delivery: ClaimedDelivery, defect: unknown) => void
}

/** The attempts in flight of one worker. */
export class Attempts {
  /** How many there are, by endpoint. */
  readonly inFlight = new Map<EndpointId, number>()
  #size = 0
  readonly #abandons = new Set<() => void>()
  readonly #options: AttemptsOptions
  readonly #transport: Context.Tag.Service<Transport>
  readonly #destinations: Destinations
  readonly #listener: AttemptsListener
  readonly #runtime: Runtime.Runtime<never>
  readonly #clock: Clock.Clock
  readonly #writeSpan: (attempt: EndedAttempt) => void

  private constructor(
    options: AttemptsOptions,
    services: { readonly transport: Context.Tag.Service<Transport>; readonly destinations: Destinations },
    listener: AttemptsListener,
    environment: {
      readonly runtime: Runtime.Runtime<never>
      readonly clock: Clock.Clock
      readonly tracer: Tracer.Tracer
    }
  ) {
    this.#options = options
    this.#transport = services.transport
    this.#destinations = services.destinations
    this.#listener = listener
    this.#runtime = environment.runtime
    this.#clock = environment.clock
    this.#writeSpan = attemptSpans(environment.tracer)
  }

  /** None in flight yet; clock, randomness and tracer are those of the calling fiber. */
  static readonly make = (
    options: AttemptsOptions,
    services: { readonly transport: Context.Tag.Service<Transport>; readonly destinations: Destinations },
    listener: AttemptsListener
  ): Effect.Effect<Attempts> =>
    Effect.map(
      Effect.all({ runtime: Effect.runtime<never>(), clock: Clock.clockWith(Effect.succeed), tracer: Effect.tracer }),
      (environment) => new Attempts(options, services, listener, environment)
    )

  /** How many there are. */
  get size(): number {
    return this.#size
  }

  /** Makes an attempt. Its destination has been loaded. */
  start(delivery: ClaimedDelivery): void {
    const { endpointId } = delivery
    this.#size += 1
    this.inFlight.set(endpointId, (this.inFlight.get(endpointId) ?? 0) + 1)
    try {
      const destination = this.#destinations.of(delivery)
      if (Either.isLeft(destination)) {
        this.#ended(endpointId)
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
      this.#writeSpan({ delivery, startedAt, outcome, next })
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
    const left = (this.inFlight.get(endpointId) ?? 0) - 1
    if (left > 0) this.inFlight.set(endpointId, left)
    else this.inFlight.delete(endpointId)
  }
}
