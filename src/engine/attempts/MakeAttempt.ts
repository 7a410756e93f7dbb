import { performance } from "node:perf_hooks"
import { type Clock, type Context, Effect, Either } from "effect"
import type { DecryptionFailed } from "../../platform/kit/Cipher.ts"
import type { ClaimedDelivery } from "../queue/Claim.ts"
import { type NextStep, nextStep } from "../queue/StateMachine.ts"
import { Expiring } from "../transport/Deadlines.ts"
import { type DestinationSettings, destinationRules } from "../transport/DestinationUrl.ts"
import type { Transport } from "../transport/Transport.ts"
import type { EndedAttempt } from "./AttemptReports.ts"
import type { Destinations } from "./Destinations.ts"
import { signatureHeaders } from "./Signature.ts"

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
