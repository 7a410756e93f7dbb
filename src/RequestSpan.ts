import { HttpServerError, type HttpServerRequest, type HttpServerResponse, HttpTraceContext } from "@effect/platform"
import { Context, DefaultServices, Effect, Exit, FiberRef, Tracer } from "effect"

/**
 * The span of a request, made by hand: the platform's own reads and copies every header and the whole address of each
 * request, traced or not.
 *
 * Its name and attributes follow OpenTelemetry's conventions for HTTP servers; of headers and the query, which may hold
 * secrets, it has nothing but the user agent.
 */

type App<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/** What a request was answered, for its span: a refusal is no failure of the service's. */
const outcomeOf = <E>(
  exit: Exit.Exit<HttpServerResponse.HttpServerResponse, E>
): readonly [number, Exit.Exit<void>] => {
  const { status } = HttpServerError.exitResponse(exit)
  return [status, status < 500 ? Exit.void : Exit.die(`HTTP ${status}`)]
}

export interface RequestSpansOptions {
  /** The route's template, e.g. `/v2/organizations/:organizationId/provider/account`, where the path has one. */
  readonly routeOf: (request: HttpServerRequest.HttpServerRequest) => string | undefined
  /** Routes that are never traced. */
  readonly quietRoutes: ReadonlySet<string>
}

const nanoseconds = (): bigint => BigInt(Date.now()) * 1_000_000n

/** Nothing below makes a span. Holds for the rest of the fiber: each request has one of its own. */
const untraced = FiberRef.set(FiberRef.currentTracerEnabled, false)

/**
 * Runs requests under their spans. Where no tracer is set, or none of its traces was chosen for a request, the request
 * runs without any span: most of a tracer's cost would go into spans that nobody sees.
 */
export const requestSpans = (
  tracer: Tracer.Tracer,
  { quietRoutes, routeOf }: RequestSpansOptions
): (<E, R>(request: HttpServerRequest.HttpServerRequest, requestId: string, app: App<E, R>) => App<E, R>) => {
  if (tracer === Context.get(DefaultServices.liveServices, Tracer.Tracer)) {
    return (_request, _requestId, app) => Effect.zipRight(untraced, app)
  }
  // The tracer is only asked for spans: handing each step of the program to it, for the sake of other tracing libraries
  // of which there are none here, costs more than the rest of the request
  const spansOnly = Tracer.make({
    span: (...args) => tracer.span(...args),
    context: (execution) => execution()
  })
  const settle = FiberRef.update(DefaultServices.currentServices, Context.add(Tracer.Tracer, spansOnly))
  return <E, R>(request: HttpServerRequest.HttpServerRequest, requestId: string, app: App<E, R>) =>
    Effect.suspend(() => {
      const parent = HttpTraceContext.fromHeaders(request.headers)
      const route = routeOf(request)
      if (route !== undefined && quietRoutes.has(route)) {
        return Effect.zipRight(untraced, app)
      }
      const name = route === undefined ? request.method : `${request.method} ${route}`
      const span = tracer.span(name, parent, Context.empty(), [], nanoseconds(), "server")
      if (!span.sampled) {
        return Effect.zipRight(untraced, app)
      }
      describe(span, request, requestId, route)
      return settle.pipe(
        Effect.zipRight(Effect.withParentSpan(app, span)),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            const [status, outcome] = outcomeOf(exit)
            span.attribute("http.response.status_code", status)
            span.end(nanoseconds(), outcome)
          })
        )
      )
    })
}

const describe = (
  span: Tracer.Span,
  request: HttpServerRequest.HttpServerRequest,
  requestId: string,
  route: string | undefined
): void => {
  span.attribute("http.request.method", request.method)
  span.attribute("url.path", request.url.split("?", 1)[0])
  span.attribute("request.id", requestId)
  if (route !== undefined) {
    span.attribute("http.route", route)
  }
  const agent = request.headers["user-agent"]
  if (agent !== undefined) {
    span.attribute("user_agent.original", agent)
  }
  const caller = request.headers["x-request-id"]
  if (caller !== undefined) {
    // Decided for errors: a caller's own id is not trusted as the request's, but kept on the trace
    span.attribute("request.caller_id", caller.slice(0, 200))
  }
}
