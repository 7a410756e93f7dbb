/**
 * The one place that says what moves a delivery from state to state (contract 9.1). Pure:
 * the queue and the re-send carry out in SQL what is decided here, and tests hold both against it.
 */
import { Duration, Effect, Option } from "effect"
import {
  DeliveryNotFailed,
  DeliveryRetryLimitReached,
  DeliveryWindowExpired,
  EndpointDeleted
} from "../errors/Errors.ts"
import type { DeliveryState } from "../events/DeliveryState.ts"
import type { AttemptTrigger } from "../publishing/Enqueue.ts"
import type { AttemptOutcome } from "./Attempt.ts"
import { classify, deliveryWindow, maxAttempts, maxAutomaticAttempts, nextDelay } from "./RetryPolicy.ts"
import type { NextStep } from "./sending/FinishedAttempt.ts"

/** What decides what becomes of a delivery. */
export interface DeliveryStatus {
  readonly state: DeliveryState
  /** Attempts made, the one under way included: 0 to `maxAttempts`. */
  readonly attemptCount: number
  /** Who asked for the attempt under way, or for the last one. */
  readonly trigger: AttemptTrigger
}

/** Whether an attempt of this number may be followed by another without anybody's asking. */
const mayTryAgain = ({ attemptCount, trigger }: Pick<DeliveryStatus, "attemptCount" | "trigger">): boolean =>
  trigger === "automatic" && attemptCount < maxAutomaticAttempts

/**
 * What an attempt's outcome makes of its delivery: delivered; queued for the next automatic attempt while any is left
 * and the outcome may pass; failed. A manual re-send makes one attempt.
 */
export const afterAttempt = (
  delivery: Pick<DeliveryStatus, "attemptCount" | "trigger">,
  outcome: Pick<AttemptOutcome, "errorCode" | "httpStatus">
): DeliveryState => {
  const verdict = classify(outcome)
  return verdict === "retry" ? (mayTryAgain(delivery) ? "queued" : "failed") : verdict
}

/**
 * What a lease that ended without a word makes of its delivery: its worker died, the attempt counts, and the next one is
 * made at once while any is left.
 */
export const afterAbandonedLease = (delivery: Pick<DeliveryStatus, "attemptCount" | "trigger">): DeliveryState =>
  mayTryAgain(delivery) ? "queued" : "failed"

/**
 * What an attempt makes of its delivery whose record comes late, after its lease was taken for abandoned: a success ends
 * well what has failed since. Nothing else moves: where an attempt waits or is under way, that one decides.
 */
export const afterLateRecord = (
  { state }: Pick<DeliveryStatus, "state">,
  outcome: Pick<AttemptOutcome, "errorCode" | "httpStatus">
): DeliveryState => (state === "failed" && classify(outcome) === "delivered" ? "delivered" : state)

/** What the deletion of its endpoint makes of a delivery: what still waits has nowhere to go. */
export const afterEndpointDeletion = ({ state }: Pick<DeliveryStatus, "state">): DeliveryState =>
  state === "queued" ? "failed" : state

/** What a re-send is judged by. */
export interface ResendCandidate extends Pick<DeliveryStatus, "state" | "attemptCount"> {
  /** Since the delivery's creation. */
  readonly ageMillis: number
  readonly endpointDeleted: boolean
}

/** Why a delivery can't be re-sent. */
export type ResendRefusal = DeliveryNotFailed | DeliveryRetryLimitReached | DeliveryWindowExpired | EndpointDeleted

/**
 * Why a delivery can't be re-sent; none where it can (contract 9.4). Where it can, it is queued at once, for one manual
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

/**
 * `afterAttempt` with the wait before the next automatic attempt, drawn from Effect's `Random`. `attempt` is the number
 * of the attempt that was made, from 1.
 */
export const nextStep = (
  { attempt, trigger }: { readonly attempt: number; readonly trigger: AttemptTrigger },
  outcome: AttemptOutcome
): Effect.Effect<NextStep> => {
  const state = afterAttempt({ attemptCount: attempt, trigger }, outcome)
  if (state !== "queued") return Effect.succeed({ state })
  return Effect.map(
    nextDelay({ attemptNumber: attempt, retryAfter: outcome.retryAfter }),
    Option.match({
      onNone: (): NextStep => ({ state: "failed" }),
      onSome: (delay): NextStep => ({ state: "queued", delay })
    })
  )
}
