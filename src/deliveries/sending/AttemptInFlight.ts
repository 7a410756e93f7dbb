import { performance } from "node:perf_hooks"
import { type Context, Effect } from "effect"
import { suspend } from "../../fibers/Suspend.ts"
import type { AttemptOutcome } from "../Attempt.ts"
import type { ClaimedDelivery } from "./Claim.ts"
import { Expiring } from "./Deadlines.ts"
import type { OutcomeReceiver } from "./Exchange.ts"
import type { Transport, TransportRequest } from "./Transport.ts"

/** An attempt that has a place. A class, since there are very many: closures would be an object each. */
export class AttemptInFlight extends Expiring implements OutcomeReceiver {
  readonly delivery: ClaimedDelivery
  /** After this time, by `performance.now()`, it is no longer sent. */
  readonly startBefore: number
  /** Whether it takes a place aside. */
  aside: boolean
  /** By `performance.now()`. */
  readonly begunAt = performance.now()
  /** Whether its answer is taking long. */
  overdue = false
  /** Whether its place is free again. */
  ended = false
  /** Where it stands among those that were sent; -1 if it is not there. */
  place = -1
  /** Ends its exchange; null before it is sent. */
  abandon: (() => void) | null = null
  #resume: ((end: Effect.Effect<AttemptOutcome>) => void) | null = null
  readonly #onOverdue: (attempt: AttemptInFlight) => void

  constructor(
    { aside, delivery, startBefore }: Pick<AttemptInFlight, "aside" | "delivery" | "startBefore">,
    onOverdue: (attempt: AttemptInFlight) => void
  ) {
    super()
    this.delivery = delivery
    this.startBefore = startBefore
    this.aside = aside
    this.#onOverdue = onOverdue
  }

  exchange({ send }: Context.Tag.Service<Transport>, request: TransportRequest): Effect.Effect<AttemptOutcome> {
    return suspend((resume) => {
      this.#resume = resume
      this.abandon = send(request, this)
    })
  }

  onOutcome(outcome: AttemptOutcome): void {
    this.#resume?.(Effect.succeed(outcome))
  }

  onDefect(defect: unknown): void {
    this.#resume?.(Effect.die(defect))
  }

  expire(): void {
    // If this process itself was busy, the answer may have arrived and be waiting to be read: it goes first
    setImmediate(this.#onOverdue, this)
  }
}
