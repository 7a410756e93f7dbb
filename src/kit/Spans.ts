import { HttpTraceContext } from "@effect/platform"
import { Effect } from "effect"

/**
 * Adds attributes to the current span, where there is one that is recorded. `Effect.annotateCurrentSpan` fails inside,
 * with a stack trace, where there is none, which costs an untraced request more than its work.
 */
export const annotateSpan = (attributes: Readonly<Record<string, unknown>>): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    const span = fiber.currentSpan
    if (span?._tag === "Span" && span.sampled) {
      for (const name of Object.keys(attributes)) {
        span.attribute(name, attributes[name])
      }
    }
    return Effect.void
  })

/** The current span's place in its trace, as a `traceparent` header has it, for others to link to; null without one. */
export const currentTraceparent: Effect.Effect<string | null> = Effect.withFiberRuntime((fiber) => {
  const span = fiber.currentSpan
  return Effect.succeed(span?._tag === "Span" ? (HttpTraceContext.toHeaders(span)["traceparent"] ?? null) : null)
})
