import { performance } from "node:perf_hooks"
import { type Context, Effect } from "effect"
import { suspend } from "../../fibers/Suspend.ts"
import type { AttemptOutcome } from "../Attempt.ts"
import type { ClaimedDelivery } from "./Claim.ts"
import { Expiring } from "./Deadlines.ts"
import type { OutcomeReceiver } from "./Exchange.ts"
import type { Transport, TransportRequest } from "./Transport.ts"

/** An attempt that has a place. A class, since there are very many: each closure would be a further object. */
export class AttemptInFlight extends Expiring implements OutcomeReceiver {
  readonly delivery: ClaimedDelivery
  /** The time after which it is no longer sent, by `performance.now()`. */
  readonly startBefore: number
  /** Whether it takes a place aside. */
  aside: boolean
  /** When it began, by `performance.now()`. */
  readonly begunAt = performance.now()
  /** Whether it has waited for its answer for longer than `slowAfterMillis`. */
  overdue = false
  /** Whether it has ended, and freed its place. */
  ended = false
  /** Its index among the attempts that were sent; -1 if it is not among them. */
  place = -1
  /** Aborts its exchange; null before it is sent. */
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
    // If this process was busy, the answer may already have arrived: let it be read first
    setImmediate(this.#onOverdue, this)
  }
}
