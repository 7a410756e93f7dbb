import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import { Context, DefaultServices, Effect, Exit, type Fiber, FiberRef, Option, Tracer } from "effect"

/** The default tracer, which discards all spans; in use if traces are off. */
export const discardingTracer: Tracer.Tracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/**
 * Facts about the request that a fiber serves, for its log line and for links to its trace: added as they become known,
 * with the same names as on its span.
 */
export class RequestFacts extends Context.Tag("connected-payments/telemetry/RequestFacts")<
  RequestFacts,
  {
    /** The request's span, even if its trace is not exported; null if there is no tracer. */
    span: Tracer.Span | null
    readonly attributes: Record<string, unknown>
  }
>() {}

const factsOf = (fiber: Fiber.RuntimeFiber<unknown, unknown>): RequestFacts["Type"] | undefined =>
  Option.getOrUndefined(Context.getOption(fiber.currentContext, RequestFacts))

const annotateCurrent = (
  { currentSpan }: Fiber.RuntimeFiber<unknown, unknown>,
  attributes: Readonly<Record<string, unknown>>
): void => {
  if (currentSpan?._tag !== "Span" || !currentSpan.sampled) return
  for (const name of Object.keys(attributes)) currentSpan.attribute(name, attributes[name])
}

/**
 * Adds attributes to the current span only, if one is recorded: for steps of a request, whose attributes are not the
 * request's. `Effect.annotateCurrentSpan` fails internally, with a stack trace, if there is none, which costs an
 * untraced request more than its work.
 */
export const annotateOwnSpan = (attributes: Readonly<Record<string, unknown>>): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    annotateCurrent(fiber, attributes)
    return Effect.void
  })

/** Adds attributes to a fiber's current span, if one is recorded, and to the facts about its request. */
export const annotateFiber = (
  fiber: Fiber.RuntimeFiber<unknown, unknown>,
  attributes: Readonly<Record<string, unknown>>
): void => {
  annotateCurrent(fiber, attributes)
  const facts = factsOf(fiber)
  if (facts !== undefined) Object.assign(facts.attributes, attributes)
}

/** `annotateFiber` for the calling fiber. */
export const annotateSpan = (attributes: Readonly<Record<string, unknown>>): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    annotateFiber(fiber, attributes)
    return Effect.void
  })

/** Adds attributes to the request's own span, from within any span below it, and to the facts about the request. */
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

/** A fiber's current span; null if it is not recorded. */
export const recordedSpanOf = (fiber: Fiber.RuntimeFiber<unknown, unknown>): Tracer.AnySpan | null =>
  fiber.currentSpan?.sampled === true && fiber.getFiberRef(FiberRef.currentTracerEnabled) ? fiber.currentSpan : null

/**
 * `Effect.fn` for functions that every request runs: an untraced request runs it without a span, which would only be
 * created and discarded.
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
 * A fiber's current span as a `traceparent` header, for others to link to; null without one. If the trace is not
 * exported, it is the request's span, so that links to it can still be correlated.
 */
export const traceparentOf = (fiber: Fiber.RuntimeFiber<unknown, unknown>): string | null => {
  const current = fiber.currentSpan
  const span = current?._tag === "Span" ? current : (factsOf(fiber)?.span ?? null)
  return span === null ? null : (HttpTraceContext.toHeaders(span)["traceparent"] ?? null)
}

/** `traceparentOf` for the calling fiber. */
export const currentTraceparent: Effect.Effect<string | null> = Effect.withFiberRuntime((fiber) =>
  Effect.succeed(traceparentOf(fiber))
)

/**
 * Exports a span regardless of the sampler, if set in the context that the span is created with. For spans that are
 * created after the fact and known to matter.
 */
export class KeptSpan extends Context.Reference<KeptSpan>()("connected-payments/telemetry/KeptSpan", {
  defaultValue: () => false
}) {}

/** The exit of a failed span: a short reason, without a stack. */
export const failedWith = (reason: string): Exit.Exit<never, string> => Exit.fail(reason)

/** Version, trace, span and flags, as defined by W3C's Trace Context version 00, without later additions. */
const form = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/

/**
 * The span that a `traceparent` header names; none unless it has exactly the form of W3C's Trace Context, version 00.
 * `tracestate` and the headers of other formats (`b3`, `x-b3-…`) are ignored.
 */
export const spanOfTraceparent = (traceparent: string | null | undefined): Option.Option<Tracer.ExternalSpan> => {
  // Check the length first: a traceparent has 55 characters, and longer texts need not be searched
  const found = traceparent?.length === 55 ? form.exec(traceparent) : null
  const [, traceId, spanId, flags] = found ?? []
  return traceId === undefined || spanId === undefined || flags === undefined
    ? Option.none()
    : Option.some(Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }))
}
