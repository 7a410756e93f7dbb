/**
 * The state transitions of a delivery, after an attempt and by a re-send (contract 9.1). Pure. The re-send's rules are
 * also implemented in SQL; tests compare the two.
 */
import { Duration, Effect, Option } from "effect"
import type { DeliveryState } from "../../events/DeliveryState.ts"
import {
  DeliveryNotFailed,
  DeliveryRetryLimitReached,
  DeliveryWindowExpired,
  EndpointDeleted
} from "../../platform/errors/Errors.ts"
import type { AttemptOutcome } from "../attempts/Attempt.ts"
import type { AttemptTrigger } from "./Enqueue.ts"
import { classify, deliveryWindow, maxAttempts, maxAutomaticAttempts, nextDelay } from "./RetryPolicy.ts"

/** The input that determines a delivery's next state. */
export interface DeliveryStatus {
  readonly state: DeliveryState
  /** How many attempts were made, including one in progress: 0 to `maxAttempts`. */
  readonly attemptCount: number
  /** How many of those were interrupted since it was queued: their workers died. */
  readonly interrupted: number
  /** What triggered the attempt in progress, or the last one. */
  readonly trigger: AttemptTrigger
}

/** Whether another automatic attempt may follow this one. */
const mayTryAgain = ({ attemptCount, interrupted, trigger }: Omit<DeliveryStatus, "state">): boolean =>
  trigger === "automatic" && attemptCount - interrupted < maxAutomaticAttempts

/**
 * The state of a delivery after an attempt: delivered; queued for the next automatic attempt, if any is left and the
 * failure may be temporary; otherwise failed. A manual re-send is one attempt only.
 */
export const afterAttempt = (
  delivery: Omit<DeliveryStatus, "state">,
  outcome: Pick<AttemptOutcome, "errorCode" | "httpStatus">
): DeliveryState => {
  const verdict = classify(outcome)
  return verdict === "retry" ? (mayTryAgain(delivery) ? "queued" : "failed") : verdict
}

/** The input that decides whether a delivery can be re-sent. */
export interface ResendCandidate extends Pick<DeliveryStatus, "state" | "attemptCount"> {
  /** Milliseconds since the delivery's creation. */
  readonly ageMillis: number
  readonly endpointDeleted: boolean
}

export type ResendRefusal = DeliveryNotFailed | DeliveryRetryLimitReached | DeliveryWindowExpired | EndpointDeleted

/**
 * Returns why a delivery can't be re-sent (contract 9.4); none if it can. It is then queued at once, for one manual
 * attempt.
 */
export const resendRefusal = (delivery: ResendCandidate): Option.Option<ResendRefusal> => {
  if (delivery.state !== "failed") return Option.some(new DeliveryNotFailed())
  if (delivery.endpointDeleted) return Option.some(new EndpointDeleted())
  if (delivery.attemptCount >= maxAttempts) return Option.some(new DeliveryRetryLimitReached())
  return delivery.ageMillis > Duration.toMillis(deliveryWindow)
    ? Option.some(new DeliveryWindowExpired())
    : Option.none()
}

/** The next state of a delivery after an attempt. */
export type NextStep =
  | { readonly state: "delivered" | "failed" }
  | { readonly state: "queued"; readonly delay: Duration.Duration }

/**
 * `afterAttempt` with the wait before the next automatic attempt, drawn from Effect's `Random`. `attempt` is the number
 * of the attempt that was made, counted from 1, and `interrupted` how many before it were interrupted.
 */
export const nextStep = (
  { attempt, interrupted, trigger }: Pick<DeliveryStatus, "interrupted" | "trigger"> & { readonly attempt: number },
  outcome: AttemptOutcome
): Effect.Effect<NextStep> => {
  const state = afterAttempt({ attemptCount: attempt, interrupted, trigger }, outcome)
  if (state !== "queued") return Effect.succeed({ state })
  return Effect.map(
    nextDelay({ attemptNumber: attempt - interrupted, retryAfter: outcome.retryAfter }),
    Option.match({
      onNone: (): NextStep => ({ state: "failed" }),
      onSome: (delay): NextStep => ({ state: "queued", delay })
    })
  )
}
