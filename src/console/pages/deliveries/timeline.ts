import type { AnswerOf } from "../../api/Types.ts"

/** The attempts of a delivery on a line of time. Pure. */

export type DeliveryDetail = AnswerOf<"deliveries", "get">
export type Delivery = Omit<DeliveryDetail, "attempts" | "event">
export type Attempt = DeliveryDetail["attempts"][number]

/** One point of the line, the oldest first. Times are ISO 8601, waits in milliseconds. */
export type TimelineStep =
  | { readonly kind: "created"; readonly at: string }
  | {
      readonly kind: "attempt"
      readonly at: string
      readonly attempt: Attempt
      /** From the end of the step before. */
      readonly waited: number
      readonly outcome: "delivered" | "failed" | "unknown"
    }
  | { readonly kind: "running"; readonly number: number }
  | { readonly kind: "next"; readonly at: string; readonly number: number; readonly manual: boolean }
  | { readonly kind: "ended"; readonly at: string; readonly state: "delivered" | "failed" }

const millis = (at: string): number => Date.parse(at)

const outcomeOf = ({ errorCode, httpStatus }: Attempt): Extract<TimelineStep, { kind: "attempt" }>["outcome"] => {
  if (errorCode !== null) return errorCode === "interrupted" ? "unknown" : "failed"
  return httpStatus === null ? "unknown" : "delivered"
}

/** When an attempt ended; its start if that is not known. */
const endOf = ({ durationMs, startedAt }: Attempt): number => millis(startedAt) + (durationMs ?? 0)

/** The steps of a delivery: its creation, each attempt with the wait before it, and what comes next or how it ended. */
export const timelineOf = (delivery: DeliveryDetail): ReadonlyArray<TimelineStep> => {
  const attempts = [...delivery.attempts].sort((a, b) => a.number - b.number)
  const steps: Array<TimelineStep> = [{ kind: "created", at: delivery.createdAt }]
  let before = millis(delivery.createdAt)
  for (const attempt of attempts) {
    steps.push({
      kind: "attempt",
      at: attempt.startedAt,
      attempt,
      waited: Math.max(0, millis(attempt.startedAt) - before),
      outcome: outcomeOf(attempt)
    })
    before = endOf(attempt)
  }
  if (delivery.state === "queued") {
    if (delivery.attemptCount > attempts.length) {
      // Counted when it begins, and listed when it has ended
      steps.push({ kind: "running", number: delivery.attemptCount })
    } else if (delivery.nextAttemptAt !== null) {
      const number = delivery.attemptCount + 1
      const interrupted = attempts.filter(({ errorCode }) => errorCode === "interrupted").length
      // But for six automatic attempts, and those that were interrupted, all are re-sends by somebody
      const manual = wasEnded({ ...delivery, attemptCount: delivery.attemptCount - interrupted })
      steps.push({ kind: "next", at: delivery.nextAttemptAt, number, manual })
    }
  } else if (delivery.finishedAt !== null) {
    steps.push({ kind: "ended", at: delivery.finishedAt, state: delivery.state })
  }
  return steps
}

/** Whether a delivery waits after an attempt that failed, and is not merely new: its first attempt counts from its beginning. */
export const waitsToRetry = ({ lastErrorCode, state }: Delivery): boolean =>
  state === "queued" && lastErrorCode !== null

/** How many attempts are made without anybody's doing (contract 9.3). */
export const automaticAttempts = 6

/** How many attempts a delivery may have, re-sends included (contract 9.4). */
export const maxAttempts = 12

/** How long after its creation a delivery may be re-sent (contract 9.4), in milliseconds. */
export const resendWindow = 72 * 60 * 60 * 1000

/** Statuses after which the service tries again by itself. */
const isRetried = (status: number): boolean => status === 408 || status === 429 || status >= 500

const finalErrors: ReadonlySet<string> = new Set([
  "destination_blocked",
  "redirect_refused",
  "response_too_large",
  "endpoint_deleted"
])

/** Whether a queued delivery had ended before, so that the attempt that it waits for is a re-send. */
const wasEnded = ({ attemptCount, lastErrorCode, lastHttpStatus }: Delivery): boolean => {
  if (attemptCount === 0 || lastErrorCode === null) return false
  if (attemptCount >= automaticAttempts || finalErrors.has(lastErrorCode)) return true
  const decidedByStatus = lastErrorCode === "http_error" || lastErrorCode.startsWith("consumer_refused_")
  return decidedByStatus && lastHttpStatus !== null && !isRetried(lastHttpStatus)
}

/** Whether a delivery can be re-sent now, and until when; or why it can't (contract 9.4). */
export type Resend =
  | { readonly allowed: true; readonly attemptsLeft: number; readonly until: string }
  | { readonly allowed: false; readonly reason: "queued" | "delivered" | "deleted" | "attempts" | "window" }

export const resendOf = (delivery: Delivery, now: number): Resend => {
  if (delivery.state !== "failed") return { allowed: false, reason: delivery.state }
  if (delivery.lastErrorCode === "endpoint_deleted") return { allowed: false, reason: "deleted" }
  if (delivery.attemptCount >= maxAttempts) return { allowed: false, reason: "attempts" }
  const until = millis(delivery.createdAt) + resendWindow
  if (now >= until) return { allowed: false, reason: "window" }
  return { allowed: true, attemptsLeft: maxAttempts - delivery.attemptCount, until: new Date(until).toISOString() }
}

/** Why a delivery can't be re-sent, and what to do instead. */
export const refusedResend: Readonly<Record<Extract<Resend, { allowed: false }>["reason"], string>> = {
  queued: "It waits for its next attempt, which is made by itself.",
  delivered: "It was delivered: nothing has to be sent again.",
  deleted: "Its destination was deleted, and nothing more is sent to it. Read the event below and process it yourself.",
  attempts:
    "It has had all of its 12 attempts. Read the event below and process it yourself, or replay the time to the destination.",
  window:
    "It was created more than 72 hours ago. Read the event below and process it yourself, or replay the time to the destination."
}
