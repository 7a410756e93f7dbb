import type { Duration } from "effect"
import type { AttemptOutcome } from "../Attempt.ts"
import type { ClaimedDelivery } from "./Claim.ts"

/** The next state of a delivery after an attempt. */
export type NextStep =
  | { readonly state: "delivered" | "failed" }
  | { readonly state: "queued"; readonly delay: Duration.Duration }

/** An attempt that was made, to be recorded. */
export interface FinishedAttempt {
  readonly delivery: ClaimedDelivery
  /** In Unix milliseconds. */
  readonly startedAt: number
  readonly outcome: AttemptOutcome
  readonly next: NextStep
}
