import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import { Context, Effect, Exit, type Fiber, FiberRef, Option, type Tracer } from "effect"

/**
 * What is known of the request that a fiber serves, for its log line and for what has to find its trace again: gathered
 * as it becomes known, by the same names as on its span.
 */
export class RequestFacts extends Context.Tag("connected-payments/telemetry/RequestFacts")<
  RequestFacts,
  {
    /** The request's span, also where none of its trace is exported; null where there is no tracer. */
    span: Tracer.Span | null
    readonly attributes: Record<string, unknown>
  }
>() {}

const factsOf = (fiber: Fiber.RuntimeFiber<unknown, unknown>): RequestFacts["Type"] | undefined =>
  Option.getOrUndefined(Context.getOption(fiber.currentContext, RequestFacts))

/**
 * Adds attributes to the current span, where there is one that is recorded, and to what is known of the request.
 * `Effect.annotateCurrentSpan` fails inside, with a stack trace, where there is none, which costs an untraced request
 * more than its work.
 */
export const annotateSpan = (attributes: Readonly<Record<string, unknown>>): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    const span = fiber.currentSpan
    if (span?._tag === "Span" && span.sampled) {
      for (const name of Object.keys(attributes)) {
        span.attribute(name, attributes[name])
      }
    }
    const facts = factsOf(fiber)
    if (facts !== undefined) Object.assign(facts.attributes, attributes)
    return Effect.void
  })

/** Adds attributes to the request's own span, from within any of those below it, and to what is known of the request. */
export const annotateRequest = (attributes: Readonly<Record<string, unknown>>): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    const facts = factsOf(fiber)
    if (facts === undefined) return Effect.void
    if (facts.span?.sampled === true) {
      for (const name of Object.keys(attributes)) facts.span.attribute(name, attributes[name])
    }
    Object.assign(facts.attributes, attributes)
    return Effect.void
  })

/**
 * `Effect.fn` for what every request passes: where nobody traces the request it runs without the span, which would be
 * made, ended and thrown away.
 */
export const spanned = <Args extends Array<unknown>, A, E, R>(
  name: string,
  run: (...args: Args) => Effect.Effect<A, E, R>
): ((...args: Args) => Effect.Effect<A, E, R>) => {
  const traced = Effect.fn(name)(run)
  return (...args) =>
    Effect.withFiberRuntime((fiber) =>
      fiber.getFiberRef(FiberRef.currentTracerEnabled) ? traced(...args) : run(...args)
    )
}

/**
 * The current span's place in its trace, as a `traceparent` header has it, for others to link to; null without one. That
 * of the request where none of its trace is exported: what links to it can still be brought together.
 */
export const currentTraceparent: Effect.Effect<string | null> = Effect.withFiberRuntime((fiber) => {
  const current = fiber.currentSpan
  const span = current?._tag === "Span" ? current : (factsOf(fiber)?.span ?? null)
  return Effect.succeed(span === null ? null : (HttpTraceContext.toHeaders(span)["traceparent"] ?? null))
})

/**
 * In the context that a span is made with: it is exported whatever the sampler says. For what is known to matter when
 * its span is made, after the fact.
 */
export class KeptSpan extends Context.Reference<KeptSpan>()("connected-payments/telemetry/KeptSpan", {
  defaultValue: () => false
}) {}

/** How a span ends that has failed: with a reason of a few words, without a stack. */
export const failedWith = (reason: string): Exit.Exit<never, string> => Exit.fail(reason)
