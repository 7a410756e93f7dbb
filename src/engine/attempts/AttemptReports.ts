import { Context, Effect, Exit, Option, type Tracer } from "effect"
import { serverAttributes } from "../../platform/kit/UrlServer.ts"
import { LogLines, type LogLinesWriter } from "../../platform/telemetry/LogLines.ts"
import { Metrics, type MetricsWriter } from "../../platform/telemetry/Metrics.ts"
import { discardingTracer, failedWith, KeptSpan, spanOfTraceparent } from "../../platform/telemetry/Spans.ts"
import type { FinishedAttempt } from "../queue/Queue.ts"

/**
 * Reports attempts to operators: a span, metrics and a log line, created when the attempt has ended. This costs nothing
 * during the attempt, and afterwards only the parts that are switched on.
 */

/** Reports each attempt that has ended, with the calling fiber's tracer, metrics and log. */
export const makeAttemptReports: Effect.Effect<(attempt: EndedAttempt) => void> = Effect.map(
  Effect.all({ tracer: Effect.tracer, metrics: Metrics, lines: LogLines }),
  ({ lines, metrics, tracer }) => {
    const writeSpan = attemptSpans(tracer)
    return (attempt) => {
      const span = writeSpan(attempt)
      if (metrics !== null) measure(metrics, attempt)
      if (lines !== null) writeLine(lines, attempt, span)
    }
  }
)

const measure = (metrics: MetricsWriter, { delivery, next, outcome }: EndedAttempt): void => {
  const reason = outcome.errorCode ?? ""
  metrics.record("connected_payments.delivery.attempt.duration", outcome.durationMs / 1000, [
    delivery.environment,
    delivery.trigger,
    next.state,
    reason
  ])
  if (next.state === "queued") {
    metrics.count("connected_payments.delivery.retry.count", [delivery.environment, reason])
  }
}

/** The attributes of both the span and the log line. */
const attributesOf = ({ delivery, next, outcome }: FinishedAttempt) => ({
  "delivery.id": delivery.id,
  "delivery.attempt": delivery.attempt,
  "delivery.trigger": delivery.trigger,
  "delivery.state": next.state,
  "endpoint.id": delivery.endpointId,
  "event.id": delivery.eventId,
  "organization.id": delivery.organizationId,
  environment: delivery.environment,
  "http.response.status_code": outcome.httpStatus ?? undefined,
  "error.type": outcome.errorCode ?? undefined
})

const writeLine = (lines: LogLinesWriter, attempt: EndedAttempt, span: Tracer.Span | "not sampled" | null): void => {
  const { delivery, outcome, startedAt } = attempt
  const failed = outcome.errorCode !== null
  const level = failed ? "WARN" : "INFO"
  if (!lines.writes(level)) return
  lines.write({
    level,
    message: failed
      ? `attempt ${delivery.attempt} failed: ${outcome.errorCode}`
      : `attempt ${delivery.attempt} delivered`,
    time: startedAt + outcome.durationMs,
    span,
    attributes: {
      ...attributesOf(attempt),
      duration_ms: outcome.durationMs,
      "notification.trace_id": notificationTrace(delivery.traceparent)
    }
  })
}

/** The trace of the notification that led to a delivery: the second part of its `traceparent`. */
const notificationTrace = (traceparent: string | null): string | undefined => traceparent?.split("-", 2)[1]

export interface EndedAttempt extends FinishedAttempt {
  readonly url: string
}

const kept = Context.make(KeptSpan, true)
const sampled = Context.empty()

/**
 * Creates the span of an attempt, in a separate trace linked to the notification that led to the delivery, and returns
 * it; null if nothing is traced. It is created once the attempt has ended, so it costs nothing during the attempt.
 *
 * Failed attempts are always kept, whatever the sampler says. A successful one is kept if its notification was, so that
 * a payment is traced completely or not at all; the sampler decides if the delivery has no trace.
 *
 * With the default tracer, which keeps nothing, there are no spans.
 */
export const attemptSpans = (
  tracer: Tracer.Tracer
): ((attempt: EndedAttempt) => Tracer.Span | "not sampled" | null) => {
  if (tracer === discardingTracer) return () => null
  return (attempt) => {
    const { delivery, outcome, startedAt, url } = attempt
    const failed = outcome.errorCode !== null
    // The common case, decided without parsing the header
    if (!failed && delivery.traceparent?.endsWith("-00") === true) return "not sampled"
    const origin = spanOfTraceparent(delivery.traceparent)
    if (!failed && Option.isSome(origin) && !origin.value.sampled) return "not sampled"
    const span = tracer.span(
      "deliver",
      Option.none(),
      failed || Option.isSome(origin) ? kept : sampled,
      linksTo(origin),
      nanoseconds(startedAt),
      "client",
      { root: true }
    )
    if (!span.sampled) return span
    const attributes = {
      ...attributesOf(attempt),
      "http.request.method": "POST",
      "http.request.resend_count": delivery.attempt > 1 ? delivery.attempt - 1 : undefined,
      // Without the path, which may contain a secret of the consumer's
      ...serverAttributes(new URL(url))
    }
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(name, value)
    span.end(
      nanoseconds(startedAt + outcome.durationMs),
      outcome.errorCode === null ? Exit.void : failedWith(outcome.errorCode)
    )
    return span
  }
}

const nanoseconds = (millis: number): bigint => BigInt(Math.round(millis)) * 1_000_000n

const linksTo = (origin: Option.Option<Tracer.ExternalSpan>): Array<Tracer.SpanLink> =>
  Option.toArray(origin).map((span) => ({ _tag: "SpanLink" as const, span, attributes: {} }))
