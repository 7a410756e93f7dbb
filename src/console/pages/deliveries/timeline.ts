import type { AnswerOf } from "../../api/Types.ts"

export type DeliveryDetail = AnswerOf<"deliveries", "get">
export type Delivery = Omit<DeliveryDetail, "attempts" | "event">
export type Attempt = DeliveryDetail["attempts"][number]

/** One step of the timeline, oldest first. Times are ISO 8601, waits in milliseconds. */
export type TimelineStep =
  | { readonly kind: "created"; readonly at: string }
  | {
      readonly kind: "attempt"
      readonly at: string
      readonly attempt: Attempt
      /** Since the end of the previous step. */
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

/** When an attempt ended; its start if the duration is unknown. */
const endOf = ({ durationMs, startedAt }: Attempt): number => millis(startedAt) + (durationMs ?? 0)

/** A delivery's steps: its creation, each attempt with the wait before it, and the next attempt or the end. */
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
      // An attempt is counted when it starts, and listed once it has ended
      steps.push({ kind: "running", number: delivery.attemptCount })
    } else if (delivery.nextAttemptAt !== null) {
      const number = delivery.attemptCount + 1
      const interrupted = attempts.filter(({ errorCode }) => errorCode === "interrupted").length
      // Apart from six automatic attempts and the interrupted ones, all attempts are manual re-sends
      const manual = wasEnded({ ...delivery, attemptCount: delivery.attemptCount - interrupted })
      steps.push({ kind: "next", at: delivery.nextAttemptAt, number, manual })
    }
  } else if (delivery.finishedAt !== null) {
    steps.push({ kind: "ended", at: delivery.finishedAt, state: delivery.state })
  }
  return steps
}

/** Whether a queued delivery waits for a retry. Not by `attemptCount`, which already counts a running first attempt. */
export const waitsToRetry = ({ lastErrorCode, state }: Delivery): boolean =>
  state === "queued" && lastErrorCode !== null

export const automaticAttempts = 6

export const maxAttempts = 12

/** How long after its creation a delivery may be re-sent, in milliseconds (contract 9.4). */
export const resendWindow = 72 * 60 * 60 * 1000

const isRetried = (status: number): boolean => status === 408 || status === 429 || status >= 500

const finalErrors: ReadonlySet<string> = new Set([
  "destination_blocked",
  "redirect_refused",
  "response_too_large",
  "endpoint_deleted"
])

/** Whether a queued delivery had already ended, so that its next attempt is a re-send. */
const wasEnded = ({ attemptCount, lastErrorCode, lastHttpStatus }: Delivery): boolean => {
  if (attemptCount === 0 || lastErrorCode === null) return false
  if (attemptCount >= automaticAttempts || finalErrors.has(lastErrorCode)) return true
  const decidedByStatus = lastErrorCode === "http_error" || lastErrorCode.startsWith("consumer_refused_")
  return decidedByStatus && lastHttpStatus !== null && !isRetried(lastHttpStatus)
}

/** Whether a delivery can be re-sent and until when, or why not (contract 9.4). */
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

export const refusedResend: Readonly<Record<Extract<Resend, { allowed: false }>["reason"], string>> = {
  queued:
    "It waits for its next attempt, which is made automatically. To send it now, replay its time to the destination.",
  delivered: "It was delivered: nothing has to be sent again.",
  deleted: "Its destination was deleted, and nothing more is sent to it. Read the event below and process it yourself.",
  attempts:
    "It has had all of its 12 attempts. Read the event below and process it yourself, or replay the time to the destination.",
  window:
    "It was created more than 72 hours ago. Read the event below and process it yourself, or replay the time to the destination."
}
