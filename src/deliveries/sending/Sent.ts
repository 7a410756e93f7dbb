import { performance } from "node:perf_hooks"
import type { AttemptOutcome } from "../Attempt.ts"
import type { ClaimedDelivery } from "./Claim.ts"
import type { Expiring } from "./Deadlines.ts"
import type { OutcomeReceiver } from "./Transport.ts"

/** Who is told of an attempt that was sent. */
export interface SentAttempts {
  /** It came to this. */
  readonly finish: (sent: Sent, outcome: AttemptOutcome) => void
  /** It met a bug. */
  readonly break: (sent: Sent, defect: unknown) => void
  /** It is not answered quickly. */
  readonly overdue: (sent: Sent) => void
}

/** An attempt in flight. A class, since there are very many: of closures each would be an object of its own. */
export class Sent implements OutcomeReceiver, Expiring {
  readonly #attempts: SentAttempts
  readonly delivery: ClaimedDelivery
  /** Where it goes, once that is known. */
  url = ""
  /** In Unix milliseconds. */
  readonly startedAt: number
  /** By `performance.now()`. */
  readonly begunAt = performance.now()
  /** Whether it takes a place aside. */
  aside: boolean
  overdue = false
  abandon: (() => void) | null = null

  constructor(attempts: SentAttempts, delivery: ClaimedDelivery, startedAt: number, aside: boolean) {
    this.#attempts = attempts
    this.delivery = delivery
    this.startedAt = startedAt
    this.aside = aside
  }

  onOutcome(outcome: AttemptOutcome): void {
    this.#attempts.finish(this, outcome)
  }

  onDefect(defect: unknown): void {
    this.#attempts.break(this, defect)
  }

  expire(): void {
    // Where this process itself was busy, the answer may be here and wait to be read: it goes first
    setImmediate(overdue, this.#attempts, this)
  }
}

const overdue = (attempts: SentAttempts, sent: Sent): void => attempts.overdue(sent)
