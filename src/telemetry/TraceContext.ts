import { Option, Tracer } from "effect"

/** Version, trace, span and flags, as W3C's Trace Context defines them today, without later additions. */
const form = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/

/**
 * The span that a `traceparent` header names; none if it does not have exactly the form of W3C's Trace Context, version
 * 00. `tracestate` and the headers of other formats (`b3`, `x-b3-…`) are not read.
 */
export const spanOfTraceparent = (traceparent: string | null | undefined): Option.Option<Tracer.ExternalSpan> => {
  // A value of another length is not a traceparent, and is not searched
  const found = traceparent?.length === 55 ? form.exec(traceparent) : null
  const [, traceId, spanId, flags] = found ?? []
  return traceId === undefined || spanId === undefined || flags === undefined
    ? Option.none()
    : Option.some(Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }))
}
