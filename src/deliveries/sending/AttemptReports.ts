import { Effect, type Tracer } from "effect"
import { LogLines, type LogLinesWriter } from "../../telemetry/LogLines.ts"
import { Metrics, type MetricsWriter } from "../../telemetry/Metrics.ts"
import { attemptSpans, type EndedAttempt } from "./AttemptSpans.ts"

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

const writeLine = (
  lines: LogLinesWriter,
  { delivery, next, outcome, startedAt }: EndedAttempt,
  span: Tracer.Span | "not sampled" | null
): void => {
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
      "delivery.id": delivery.id,
      "delivery.attempt": delivery.attempt,
      "delivery.trigger": delivery.trigger,
      "delivery.state": next.state,
      "endpoint.id": delivery.endpointId,
      "event.id": delivery.eventId,
      "organization.id": delivery.organizationId,
      environment: delivery.environment,
      "http.response.status_code": outcome.httpStatus ?? undefined,
      "error.type": outcome.errorCode ?? undefined,
      duration_ms: outcome.durationMs,
      "notification.trace_id": notificationTrace(delivery.traceparent)
    }
  })
}

/** The trace of the notification that led to a delivery: the second part of its `traceparent`. */
const notificationTrace = (traceparent: string | null): string | undefined => traceparent?.split("-", 2)[1]
