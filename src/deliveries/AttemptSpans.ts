import { Headers, HttpTraceContext } from "@effect/platform"
import { Context, DefaultServices, Exit, Option, Tracer } from "effect"
import type { AttemptOutcome } from "./Attempt.ts"
import type { ClaimedDelivery, NextStep } from "./Queue.ts"

/** An attempt that has ended. */
export interface EndedAttempt {
  readonly delivery: ClaimedDelivery
  /** In Unix milliseconds. */
  readonly startedAt: number
  readonly outcome: AttemptOutcome
  readonly next: NextStep
}

const discarded = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/**
 * Writes the span of an attempt, in a trace of its own, linked to the notification that led to the delivery. Made when
 * the attempt is over and all about it is known: while it is under way it costs nothing, and what is not sampled costs
 * the sampler's decision alone. Where the tracer is the default one, which keeps nothing, there are no spans.
 */
export const attemptSpans = (tracer: Tracer.Tracer): ((attempt: EndedAttempt) => void) => {
  if (tracer === discarded) return () => {}
  return ({ delivery, next, outcome, startedAt }) => {
    const span = tracer.span(
      "deliver",
      Option.none(),
      Context.empty(),
      linksTo(delivery.traceparent),
      nanoseconds(startedAt),
      "client",
      { root: true }
    )
    if (!span.sampled) return
    span.attribute("delivery.id", delivery.id)
    span.attribute("delivery.attempt", delivery.attempt)
    span.attribute("delivery.trigger", delivery.trigger)
    span.attribute("endpoint.id", delivery.endpointId)
    span.attribute("event.id", delivery.eventId)
    span.attribute("organization.id", delivery.organizationId)
    span.attribute("environment", delivery.environment)
    span.attribute("http.response.status_code", outcome.httpStatus ?? 0)
    span.attribute("delivery.error_code", outcome.errorCode ?? "")
    span.attribute("delivery.state", next.state)
    span.end(nanoseconds(startedAt + outcome.durationMs), Exit.void)
  }
}

const nanoseconds = (millis: number): bigint => BigInt(Math.round(millis)) * 1_000_000n

const linksTo = (traceparent: string | null): Array<Tracer.SpanLink> =>
  traceparent === null
    ? []
    : Option.toArray(HttpTraceContext.w3c(Headers.fromInput({ traceparent }))).map((span) => ({
        _tag: "SpanLink" as const,
        span,
        attributes: {}
      }))
