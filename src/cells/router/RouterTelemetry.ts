import type { IncomingMessage, ServerResponse } from "node:http"
import { performance } from "node:perf_hooks"
import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import { Context, Effect, Exit, Option, type Tracer } from "effect"
import { addressBehind, isTrustedProxy } from "../../kit/ClientAddress.ts"
import type { TrustedProxies } from "../../settings/Forms.ts"
import { type LineLevel, LogLines, type LogLinesWriter } from "../../telemetry/LogLines.ts"
import { Metrics, type MetricsWriter } from "../../telemetry/Metrics.ts"
import { discardingTracer, failedWith } from "../../telemetry/Spans.ts"
import { spanOfTraceparent } from "../../telemetry/TraceContext.ts"
import type { Target } from "./Target.ts"

/**
 * What a router tells operators of each request: a span, a metric and a line of the log. The cell tells of the same
 * request by itself; the line here has its id, and the cell's span is below the one here if it trusts the router.
 */

/** Why a router refused a request itself. */
export type RefusalReason =
  /** The cell does not live, could not be reached, or lost the request. */
  | "cell_away"
  /** As many requests are under way to the cell as may be, of all clients or of this one. */
  | "cell_busy"
  /** The directory does not answer, and the route is not remembered. */
  | "route_unknown"
  /** There is no memory for a body that says where its request belongs. */
  | "no_memory"
  /** The request itself: too large, too slow, not valid. */
  | "request"

/** A request on its way through a router, with what became known of it. */
export interface Routed {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly by: Target["by"]
  /** The organization that the path names; nobody has authenticated it yet. */
  readonly organizationId: string | undefined
  /** The cell that was asked last. */
  cell: string | undefined
  refusal: RefusalReason | undefined
  /** The id that the answer has. */
  requestId: string | undefined
  /** What the cell continues in place of the client's trace; null if the router has none of its own. */
  readonly traceparent: string | null
}

export interface RouterTelemetryOptions {
  readonly trustedProxies: TrustedProxies
  /** Callers whose traces their requests continue; other callers' traces are only linked. */
  readonly trustedTraceParents: TrustedProxies
}

export interface RouterTelemetry {
  readonly metrics: MetricsWriter | null
  /** Begins to observe a request; what was observed is told when its answer has ended. */
  readonly begin: (request: IncomingMessage, response: ServerResponse, target: Target) => Routed
}

const nanoseconds = (): bigint => BigInt(Date.now()) * 1_000_000n

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

/** A client can send any word as a method. */
const methodOf = ({ method = "" }: IncomingMessage): string => (methods.has(method) ? method : "_OTHER")

/** The status recorded for a request whose client went away before the answer; it is never sent. */
const clientGoneStatus = 499

const levelOf = (status: number): LineLevel =>
  status < 400 || status === clientGoneStatus ? "INFO" : status < 500 ? "WARN" : "ERROR"

/** What is known of a request at its end, with the same names on spans and in the log. */
const attributesOf = (routed: Routed, status: number): Readonly<Record<string, unknown>> => ({
  "http.request.method": methodOf(routed.request),
  "http.response.status_code": status,
  "router.by": routed.by,
  "router.cell": routed.cell,
  "router.refusal": routed.refusal,
  "organization.id": routed.organizationId,
  "request.id": routed.requestId
})

interface Outputs {
  readonly tracer: Tracer.Tracer
  readonly metrics: MetricsWriter | null
  readonly lines: LogLinesWriter | null
}

const endSpan = (span: Tracer.Span, attributes: Readonly<Record<string, unknown>>, status: number): void => {
  if (span.sampled) {
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(name, value)
    span.attribute("url.scheme", "http")
    if (status >= 500) span.attribute("error.type", String(status))
  }
  span.end(nanoseconds(), status < 500 ? Exit.void : failedWith(`HTTP ${status}`))
}

const tell = ({ lines, metrics }: Outputs, routed: Routed, span: Tracer.Span | null, startedAt: number): void => {
  const { cell = "", refusal, request, response } = routed
  const status = response.headersSent ? response.statusCode : clientGoneStatus
  const millis = performance.now() - startedAt
  metrics?.record("connected_payments.router.request.duration", millis / 1000, [cell, `${Math.floor(status / 100)}xx`])
  if (refusal !== undefined) metrics?.count("connected_payments.router.refusal.count", [cell, refusal])
  const attributes = attributesOf(routed, status)
  if (span !== null) endSpan(span, attributes, status)
  const level = levelOf(status)
  if (lines?.requests !== true || !lines.writes(level)) return
  lines.write({
    level,
    message: `${methodOf(request)} by ${routed.by} to ${routed.cell ?? "(no cell)"} ${status}`,
    time: Date.now(),
    span,
    attributes: { ...attributes, duration_ms: Math.round(millis * 10) / 10 }
  })
}

/** The telemetry of a router. */
export const makeRouterTelemetry = (options: RouterTelemetryOptions): Effect.Effect<RouterTelemetry> =>
  Effect.map(Effect.all({ tracer: Effect.tracer, metrics: Metrics, lines: LogLines }), (outputs) => {
    const { lines, metrics, tracer } = outputs
    const traces = tracer !== discardingTracer
    const tells = traces || metrics !== null || lines?.requests === true

    const continuesTraceOf = ({ headers, socket }: IncomingMessage): boolean => {
      const connection = socket.remoteAddress ?? "unknown"
      const forwarded = [headers["x-forwarded-for"] ?? []].flat().join(",")
      return [connection, addressBehind(options.trustedProxies, connection, forwarded)].some((address) =>
        isTrustedProxy(address, options.trustedTraceParents)
      )
    }

    const startSpan = (request: IncomingMessage): Tracer.Span => {
      const caller = spanOfTraceparent([request.headers["traceparent"] ?? []].flat()[0])
      const isParent = Option.isSome(caller) && continuesTraceOf(request)
      const links: ReadonlyArray<Tracer.SpanLink> =
        Option.isSome(caller) && !isParent ? [{ _tag: "SpanLink", span: caller.value, attributes: {} }] : []
      const parent = isParent ? caller : Option.none()
      return tracer.span(`route ${methodOf(request)}`, parent, Context.empty(), links, nanoseconds(), "server")
    }

    const begin: RouterTelemetry["begin"] = (request, response, target) => {
      // Monitors ask for health every few seconds, and no cell sees it
      const isQuiet = target.by === "health"
      const span = traces && !isQuiet ? startSpan(request) : null
      const routed: Routed = {
        request,
        response,
        by: target.by,
        organizationId: target.by === "organization" ? target.id : undefined,
        cell: undefined,
        refusal: undefined,
        requestId: undefined,
        traceparent: span === null ? null : (HttpTraceContext.toHeaders(span)["traceparent"] ?? null)
      }
      if (tells && !isQuiet) {
        const startedAt = performance.now()
        response.once("close", () => tell(outputs, routed, span, startedAt))
      }
      return routed
    }

    return { metrics, begin }
  })
