import { Option, Tracer } from "effect"

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
