import { Array as Arr, Chunk, Duration, Effect, Option, Schedule, Schema } from "effect"
import { refusedReasons } from "../../events/DeliveryHeaders.ts"
import type { DeliveryState } from "../../events/DeliveryState.ts"
import {
  DeliveryNotFailed,
  DeliveryRetryLimitReached,
  DeliveryWindowExpired,
  EndpointDeleted
} from "../../platform/errors/Errors.ts"
import type { AttemptTrigger } from "../queue/Enqueue.ts"

/**
 * The result of one attempt to deliver an event: the transport creates it, the queue stores it and the history shows
 * it. The only parts of the consumer's answer in it are its status and, from a closed list, its reason to refuse
 * (contract 9.8).
 */

/**
 * Why an attempt did not end in HTTP 2xx (contract 9.8).
 *
 * - `timeout`: no complete exchange within the attempt's timeout.
 * - `connection_refused`, `connection_reset`, `dns_failure`, `tls_failure`: the point at which the exchange broke.
 * - `network_error`: any other failure below the HTTP level.
 * - `destination_blocked`: the address is not one that the service may send to; nothing was sent.
 * - `redirect_refused`: HTTP 3xx; redirects are never followed.
 * - `http_error`: any other HTTP status outside 2xx; the status itself is in `httpStatus`.
 * - `response_too_large`: the answer's head passed the size limit, so its status cannot be relied on. A 2xx whose
 *   *body* is too long is a success: the rest of the body is simply not read.
 * - `interrupted`: the worker died during the attempt; whether the consumer received the event is unknown.
 * - `endpoint_deleted`: the endpoint was deleted while the delivery waited; no further attempt is made. Only in a
 *   delivery's `lastErrorCode`, never in an attempt.
 * - `consumer_refused_…`: HTTP 4xx with a header in which the consumer's kit says why it refused; see `refusedCode`.
 *   The status decides as it does for `http_error`.
 */
export const AttemptErrorCode = Schema.Literal(
  "timeout",
  "connection_refused",
  "connection_reset",
  "dns_failure",
  "tls_failure",
  "destination_blocked",
  "redirect_refused",
  "http_error",
  "response_too_large",
  "network_error",
  "interrupted",
  "endpoint_deleted",
  "consumer_refused_signature",
  "consumer_refused_time",
  "consumer_refused_version",
  "consumer_refused_organization",
  "consumer_refused_environment"
).annotations({
  identifier: "AttemptErrorCode",
  description: "Why a delivery attempt did not succeed"
})

export type AttemptErrorCode = typeof AttemptErrorCode.Type

/** The codes whose HTTP status alone decides whether the delivery is retried. */
export type StatusErrorCode = Extract<AttemptErrorCode, "http_error" | `consumer_refused_${string}`>

const refusedCodes: ReadonlyMap<unknown, StatusErrorCode> = new Map(
  refusedReasons.map((reason) => [reason, `consumer_refused_${reason}` as const])
)

/** The code for the value that a consumer sent in `refusedHeaderName`. Any other value has no code and is not kept. */
export const refusedCode = (header: unknown): StatusErrorCode | undefined => refusedCodes.get(header)

export const isStatusErrorCode = (code: AttemptErrorCode): code is StatusErrorCode =>
  code === "http_error" || code.startsWith("consumer_refused_")

/** The outcome of one delivery attempt (contract 9.8). */
export interface AttemptOutcome {
  /** The consumer's HTTP status, or `null` if there was no answer. */
  readonly httpStatus: number | null
  /** `null` exactly when the consumer answered 2xx. */
  readonly errorCode: AttemptErrorCode | null
  /** From the start of the attempt to its end, in whole milliseconds; never negative. */
  readonly durationMs: number
  /** The consumer's `Retry-After` with a 429 or 503, otherwise `null`; see `parseRetryAfter`. */
  readonly retryAfter: Duration.Duration | null
}

/**
 * The retry policy (contract 9.3), as one `Schedule`. Delays are computed from the number of attempts made, so no
 * process keeps any state of it in memory.
 */

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

/**
 * The state transitions of a delivery, after an attempt and by a re-send (contract 9.1). Pure. The re-send's rules are
 * also implemented in SQL; tests compare the two.
 */

export interface DeliveryStatus {
  readonly state: DeliveryState
  /** How many attempts were made, including one in progress: 0 to `maxAttempts`. */
  readonly attemptCount: number
  /** How many of those were interrupted since it was queued: their workers died. */
  readonly interrupted: number
  /** What triggered the attempt in progress, or the last one. */
  readonly trigger: AttemptTrigger
}

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

export interface ResendCandidate extends Pick<DeliveryStatus, "state" | "attemptCount"> {
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
