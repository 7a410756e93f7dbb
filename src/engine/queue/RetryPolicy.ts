/**
 * The retry policy (contract 9.3), as one `Schedule`. Delays are computed from the number of attempts made, so no
 * process keeps any state of it in memory.
 */
import { Array as Arr, Chunk, Duration, Effect, Option, Schedule } from "effect"
import {
  type AttemptErrorCode,
  type AttemptOutcome,
  isStatusErrorCode,
  type StatusErrorCode
} from "../attempts/Attempt.ts"

/**
 * The wait before each automatic attempt, without jitter, counted from the end of the one before; the first is made at
 * once. All six attempts fall well within the delivery window.
 */
export const automaticDelays: Arr.NonEmptyReadonlyArray<Duration.Duration> = [
  Duration.zero,
  Duration.seconds(30),
  Duration.minutes(5),
  Duration.minutes(30),
  Duration.hours(3),
  Duration.hours(12)
]

/** How many automatic attempts are made (contract 9.3). */
export const maxAutomaticAttempts = automaticDelays.length

/**
 * How many claims of a delivery may be abandoned by workers that died before the delivery is given up. Such claims use
 * up none of the automatic attempts, and no attempt at all if they were abandoned before their attempts began. The bound
 * protects against a delivery that crashes every worker that claims it.
 */
export const maxAbandoned = automaticDelays.length

/** How many attempts a delivery may have, manual re-sends and interrupted ones included (contract 9.4). */
export const maxAttempts = 12

/** How long after its creation a delivery may be re-sent (contract 9.4). */
export const deliveryWindow = Duration.hours(72)

/**
 * Every delay is multiplied by a factor drawn uniformly from this range, so that failed deliveries do not all return at
 * once.
 */
export const jitter = { min: 0.8, max: 1.2 } as const

/**
 * The schedule of automatic attempts: `maxAutomaticAttempts` recurrences, each after its jittered delay, the first at
 * once. The jitter is drawn from Effect's `Random`.
 */
export const automaticAttempts = Schedule.fromDelays(...automaticDelays).pipe(Schedule.jitteredWith(jitter))

const jitteredDelays = Schedule.delays(automaticAttempts)

/** The input of `nextDelay`. */
export interface AttemptsSoFar {
  /** How many attempts were made: the number of the one that just failed, or 0 before the first. */
  readonly attemptNumber: number
  /** The consumer's `Retry-After`, if its 429 or 503 had one. */
  readonly retryAfter?: Duration.Duration | null
}

/**
 * The longest wait that a consumer's `Retry-After` can cause: the delay of the step after the next one, or of the last
 * step.
 */
const longestWait = (attemptNumber: number): Duration.Duration =>
  automaticDelays[attemptNumber + 1] ?? Arr.lastNonEmpty(automaticDelays)

/**
 * The wait before the next automatic attempt, in whole milliseconds; `None` when the automatic attempts are used up.
 *
 * `retryAfter` may lengthen the wait up to the following step's delay without jitter (for the last step: its own), and
 * never shortens it.
 */
export const nextDelay = Effect.fnUntraced(function* ({ attemptNumber, retryAfter }: AttemptsSoFar) {
  if (!(attemptNumber < maxAutomaticAttempts)) return Option.none<Duration.Duration>()
  // The step's number is its only state: the schedule is run up to it each time, so it survives a restart
  const steps = yield* Schedule.run(jitteredDelays, 0, Arr.replicate(undefined, attemptNumber + 1))
  return Chunk.last(steps).pipe(
    Option.map((delay) => Duration.millis(Math.round(Duration.toMillis(delay)))),
    Option.map((delay) =>
      retryAfter ? Duration.max(delay, Duration.min(retryAfter, longestWait(attemptNumber))) : delay
    )
  )
})

/** The effect of an outcome on its delivery. Whether any attempts are left is up to `nextDelay`. */
export type AttemptVerdict = "delivered" | "retry" | "failed"

const verdictOfStatus = (status: number): AttemptVerdict => {
  if (status >= 200 && status < 300) return "delivered"
  return status === 408 || status === 429 || (status >= 500 && status < 600) ? "retry" : "failed"
}

/** Verdicts for the errors that are not an HTTP status. */
const verdictOfError: Record<Exclude<AttemptErrorCode, StatusErrorCode>, AttemptVerdict> = {
  timeout: "retry",
  connection_refused: "retry",
  connection_reset: "retry",
  dns_failure: "retry",
  tls_failure: "retry",
  network_error: "retry",
  // It is unknown whether the consumer has the event, and delivery is at least once
  interrupted: "retry",
  destination_blocked: "failed",
  redirect_refused: "failed",
  // The consumer answered, but not with a readable HTTP response: one of "all other errors"
  response_too_large: "failed",
  endpoint_deleted: "failed"
}

/**
 * Classifies an attempt (contract 9.1, 9.2): 2xx is delivered; network failures, timeouts, 408, 429 and 5xx are
 * retried; redirects and everything else are definitive failures.
 */
export const classify = ({
  errorCode,
  httpStatus
}: Pick<AttemptOutcome, "errorCode" | "httpStatus">): AttemptVerdict =>
  errorCode === null || isStatusErrorCode(errorCode)
    ? httpStatus === null
      ? "failed"
      : verdictOfStatus(httpStatus)
    : verdictOfError[errorCode]

/**
 * The three forms of an HTTP date: the current one, the obsolete one with a two-digit year, and that of C's `asctime`.
 * `Date.parse` reads each, if its zone is stated; it would read much else as well.
 */
const httpDates = [
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (\d\d)-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT$/,
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} ([ \d]\d) \d\d:\d\d:\d\d \d{4}$/
]

/** An HTTP date in Unix milliseconds; `null` if the text is not such a date, or names no real time. */
const parseHttpDate = (text: string): number | null => {
  const day = httpDates.map((form) => form.exec(text)?.[1]).find((found) => found !== undefined)
  const parsed = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`)
  // Date.parse rolls the 31st of a shorter month over into the next
  return Number.isFinite(parsed) && new Date(parsed).getUTCDate() === Number(day) ? parsed : null
}

/**
 * Parses a `Retry-After` header: whole seconds, or an HTTP date in any of its three forms. A date in the past means no
 * wait; anything else is `null`. The wait is not bounded here: `nextDelay` bounds it.
 */
export const parseRetryAfter = (header: string, now: Date): Duration.Duration | null => {
  const text = header.trim()
  if (/^\d+$/.test(text)) return Duration.seconds(Number(text))
  const at = parseHttpDate(text)
  return at === null ? null : Duration.millis(Math.max(0, at - now.getTime()))
}
