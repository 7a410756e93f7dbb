import type { IncomingMessage, ServerResponse } from "node:http"
import { performance } from "node:perf_hooks"
import { HttpApiBuilder, HttpServerError, HttpServerResponse } from "@effect/platform"
import {
  Cause,
  Context,
  Effect,
  type Exit,
  FiberRef,
  FiberRefs,
  HashMap,
  HashSet,
  Layer,
  Option,
  Exit as Outcome,
  Runtime,
  Struct,
  Tracer
} from "effect"
import { entryPaths, InboundApi } from "../../inbound/Api.ts"
import { Inbound } from "../../inbound/Inbound.ts"
import {
  type ApiError,
  errorBody,
  InternalError,
  isApiError,
  retrySeconds,
  ServiceUnavailable,
  type SignatureInvalid,
  type UnsupportedMediaType
} from "../../platform/errors/Errors.ts"
import { errorAttributes, providerAttributes } from "../../platform/errors/ProviderAnswer.ts"
import { BaseApi } from "../../platform/kit/BaseApi.ts"
import { errorLink } from "../../platform/kit/ErrorLink.ts"
import { newRequestId, pathOf, RequestId } from "../../platform/kit/Request.ts"
import type { TrustedProxies } from "../../platform/settings/Forms.ts"
import { type LineLevel, LogLines, type LogLinesWriter } from "../../platform/telemetry/LogLines.ts"
import { Metrics, type MetricsWriter } from "../../platform/telemetry/Metrics.ts"
import {
  annotateSpan,
  discardingTracer,
  failedWith,
  RequestFacts,
  spanOfTraceparent
} from "../../platform/telemetry/Spans.ts"
import { BodyDropped, isIncompleteBody, messageOf, readMessage, type UnreadableRequest } from "../../server/Body.ts"
import { comesFrom, headerOf, type Sent } from "../../server/Connections.ts"
import { type DirectListener, DirectListeners } from "../../server/DirectListeners.ts"
import { challengeOf, isToolServer, rpcError } from "../../server/RpcError.ts"

/**
 * The telemetry of a request: its span, its metric and its log line, all written without the platform's helpers. The
 * platform's own span reads and copies every header and the whole URL of each request, traced or not; a logger's
 * annotations cost more than the rest of a request.
 *
 * Names follow OpenTelemetry's conventions for HTTP servers; of the headers and the query, which may hold secrets, only
 * the user agent and the caller's `x-request-id` are recorded.
 */

type App<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/** The parts of a request's head that spans and log lines use. */
export interface RequestHead extends Sent {
  readonly method: string
  readonly url: string
}

interface RequestTelemetryOptions {
  readonly tracer: Tracer.Tracer
  readonly metrics: MetricsWriter | null
  readonly lines: LogLinesWriter | null
  /**
   * Whether a request continues its caller's trace (`traceparent`). All others begin a trace of their own with a link
   * to the caller's, so that strangers neither decide what is exported nor write into anybody's trace.
   */
  readonly continuesTraceOf: (request: RequestHead) => boolean
}

/** Routes that monitors request every few seconds: their traces and log lines would bury the others. */
const quietRoutes: ReadonlySet<string> = new Set(["/health/live", "/health/ready"])

const nanoseconds = (): bigint => BigInt(Date.now()) * 1_000_000n

/**
 * Runs a server without spans until a request's trace is sampled. The tracer is then asked for spans only: passing it
 * each step of the program, which serves other tracing libraries that are not used here, costs more than the rest of
 * the request.
 */
export const servingUntraced = <A, E, R>(serve: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.tracer, (tracer) =>
    serve.pipe(
      Effect.withTracer(Tracer.make({ span: (...args) => tracer.span(...args), context: (execution) => execution() })),
      Effect.withTracerEnabled(false)
    )
  )

/** Turns spans on for the rest of the fiber; each request has its own fiber. */
const traced = FiberRef.set(FiberRef.currentTracerEnabled, true)

/** The methods that metrics and spans name; a client can send any word. */
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

/** The status recorded for a request whose client went away before the answer; it is never sent. */
const clientGoneStatus = 499

const statusOf = (exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>): number =>
  Outcome.isFailure(exit) && HashSet.has(Cause.interruptors(exit.cause), HttpServerError.clientAbortFiberId)
    ? clientGoneStatus
    : HttpServerError.exitResponse(exit).status

/** Whether the service failed: not if the provider has no such operation, which any caller can ask for. */
const isFailure = (status: number): boolean => status >= 500 && status !== 501

/**
 * The level of a request's log line. A tool's refusal has status 200, and its code among the request's facts. Of the
 * provider's notifications, which are most requests, the receipts say what became of those that were taken.
 */
const levelOf = (status: number, { attributes }: RequestFacts["Type"]): LineLevel => {
  if (status === clientGoneStatus) return "INFO"
  if (status < 400 && attributes["notification.outcome"] !== undefined) return "DEBUG"
  if (status < 400) return attributes["api.error.code"] === undefined ? "INFO" : "WARN"
  return isFailure(status) ? "ERROR" : "WARN"
}

/** The facts about a request that its log line includes besides the result, if known. */
const loggedFacts = [
  "organization.id",
  "environment",
  "author.kind",
  "author.id",
  "gen_ai.tool.name",
  "notification.id",
  "notification.type",
  "notification.outcome",
  "api.error.code",
  ...providerAttributes
] as const

interface ObservedRequest {
  readonly request: RequestHead
  readonly requestId: string
  readonly facts: RequestFacts["Type"]
  /** The route's template, e.g. `/v2/organizations/:organizationId/provider/account`, if the path has one. */
  readonly routeOf: () => string | undefined
}

interface Served {
  readonly method: string
  readonly route: string | undefined
  readonly requestId: string
  readonly facts: RequestFacts["Type"]
  readonly startedAt: number
}

const startSpan = (
  { continuesTraceOf, tracer }: RequestTelemetryOptions,
  request: RequestHead,
  { facts, method, requestId, route }: Served
) => {
  const name = route === undefined ? method : `${method} ${route}`
  const caller = spanOfTraceparent(headerOf(request, "traceparent"))
  const parent = Option.isSome(caller) && continuesTraceOf(request) ? caller : Option.none()
  const links = Option.isNone(parent) && Option.isSome(caller) ? [linkTo(caller.value)] : []
  const span = tracer.span(name, parent, Context.empty(), links, nanoseconds(), "server")
  facts.span = span
  if (span.sampled) describe(span, request, { method, requestId, route })
  return span
}

const endSpan = (span: Tracer.Span, status: number) => {
  span.attribute("http.response.status_code", status)
  if (isFailure(status)) span.attribute("error.type", String(status))
  // A refusal is not a failure of the service
  span.end(nanoseconds(), isFailure(status) ? failedWith(`HTTP ${status}`) : Outcome.void)
}

/**
 * Runs requests and reports them to operators. If there is no tracer, or the request is not sampled, it runs without
 * child spans: most of a tracer's cost would go into spans that nobody sees.
 */
const requestTelemetry = (options: RequestTelemetryOptions) => {
  const { lines, metrics } = options
  const traces = options.tracer !== discardingTracer
  const logs = lines?.requests === true && (["DEBUG", "INFO", "WARN", "ERROR"] as const).some(lines.writes)
  const tell = (served: Served, exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>) => {
    const { facts, method, route, startedAt } = served
    const status = statusOf(exit)
    const millis = performance.now() - startedAt
    if (facts.span?.sampled === true) endSpan(facts.span, status)
    metrics?.record("http.server.request.duration", millis / 1000, [
      method,
      "http",
      route ?? "",
      String(status),
      isFailure(status) ? String(status) : ""
    ])
    if (logs && !(route !== undefined && quietRoutes.has(route))) {
      const level = levelOf(status, facts)
      if (lines.writes(level)) lines.write(lineOf(served, { level, millis, status }))
    }
  }

  return <E, R>({ facts, request, requestId, routeOf }: ObservedRequest, app: App<E, R>): App<E, R> => {
    if (!traces && !logs && metrics === null) {
      return app
    }
    return Effect.suspend(() => {
      const route = routeOf()
      const method = methods.has(request.method) ? request.method : "_OTHER"
      const served: Served = { method, route, requestId, facts, startedAt: performance.now() }
      const quiet = route !== undefined && quietRoutes.has(route)
      const span = traces && !quiet ? startSpan(options, request, served) : null
      const running = span?.sampled === true ? Effect.zipRight(traced, Effect.withParentSpan(app, span)) : app
      // The server runs requests uninterruptibly around their handlers: nothing is lost between a handler and this
      return Effect.matchCauseEffect(running, {
        onFailure: (cause) => {
          tell(served, Outcome.failCause(cause))
          return Effect.failCause(cause)
        },
        onSuccess: (response) => {
          tell(served, Outcome.succeed(response))
          return Effect.succeed(response)
        }
      })
    })
  }
}

export interface ObservingOptions {
  readonly trustedProxies: TrustedProxies
  /** Callers whose traces their requests continue; other callers' traces are only linked. */
  readonly trustedTraceParents: TrustedProxies
}

/** Runs requests and reports them, to the process's own tracer, metrics and log. */
export const observing = ({ trustedProxies, trustedTraceParents }: ObservingOptions) =>
  Effect.map(Effect.all({ tracer: Effect.tracer, metrics: Metrics, lines: LogLines }), (telemetry) =>
    requestTelemetry({
      ...telemetry,
      continuesTraceOf: (request) => comesFrom(request, trustedTraceParents, trustedProxies)
    })
  )

const lineOf = (
  { facts, method, requestId, route }: Served,
  { level, millis, status }: { readonly level: LineLevel; readonly millis: number; readonly status: number }
) => {
  const attributes: Record<string, unknown> = {
    "request.id": requestId,
    "http.request.method": method,
    "http.route": route,
    "http.response.status_code": status,
    duration_ms: Math.round(millis * 10) / 10
  }
  for (const name of loggedFacts) attributes[name] = facts.attributes[name]
  return {
    level,
    message: `${method} ${route ?? "(no route)"} ${status}`,
    time: Date.now(),
    span: facts.span,
    attributes
  }
}

const linkTo = (span: Tracer.ExternalSpan): Tracer.SpanLink => ({ _tag: "SpanLink", span, attributes: {} })

const describe = (
  span: Tracer.Span,
  request: RequestHead,
  { method, requestId, route }: Pick<Served, "method" | "requestId" | "route">
): void => {
  span.attribute("http.request.method", method)
  span.attribute("url.scheme", "http")
  span.attribute("request.id", requestId)
  if (route !== undefined) {
    span.attribute("http.route", route)
    // Without a route the path may be anything, even a key pasted in the wrong place
    span.attribute("url.path", pathOf(request.url))
  }
  const agent = headerOf(request, "user-agent")
  if (agent !== undefined) {
    span.attribute("user_agent.original", agent.slice(0, 200))
  }
  const caller = headerOf(request, "x-request-id")
  if (caller !== undefined) {
    // A caller's own id is not trusted as the request's id, but recorded on the trace
    span.attribute("request.caller_id", caller.slice(0, 200))
  }
}

/** The rest is the one place where a failure becomes a response (contract 12.1). */

/** The response form of errors: the tool server's protocol, or the API's form everywhere else. */
const responseTo = (url: string) => (isToolServer(url) ? rpcErrorResponse : errorResponse)

const errorResponse = (error: ApiError, requestId: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.unsafeJson(errorBody(error, requestId), { status: error.status, headers: headersOf(error) })

const rpcErrorResponse = (error: ApiError, requestId: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.unsafeJson(rpcError(error, requestId), {
    status: error.status,
    headers: { ...headersOf(error), ...challengeOf(error) }
  })

const headersOf = (error: ApiError): Record<string, string> => ({
  ...(error.retryAfter === null ? {} : { "retry-after": String(retrySeconds(error.retryAfter)) }),
  ...(error.allow.length === 0 ? {} : { allow: error.allow.join(", ") }),
  link: errorLink(error),
  // The unread rest of a body would be taken for the next request
  ...(error.status === 413 ? { connection: "close" } : {})
})

/** The end of a request whose client went away: there is nobody to answer, and the service has not failed. */
export const clientGone = Cause.interrupt(HttpServerError.clientAbortFiberId)

/** Whether a request failed because its client went away; other failures are then only consequences. */
const isGone = (cause: Cause.Cause<unknown>): boolean =>
  HashSet.has(Cause.interruptors(cause), HttpServerError.clientAbortFiberId) || isIncompleteBody(Cause.squash(cause))

const report = (error: ApiError, cause: Cause.Cause<unknown>) => {
  if (!isFailure(error.status) || error instanceof BodyDropped) {
    return Effect.void
  }
  return error._tag === "InternalError"
    ? Effect.logError("A request failed by a defect", cause)
    : Effect.logWarning(`A request was answered ${error.code}`, error.cause)
}

export interface Answering {
  readonly url: string
  readonly requestId: string
  /** Adds the parts that every answer has, such as headers. */
  readonly complete: (response: HttpServerResponse.HttpServerResponse) => HttpServerResponse.HttpServerResponse
  readonly errorOf: (failure: unknown) => Effect.Effect<ApiError>
}

/** Returns a documented error as it is; any other failure, or a defect, becomes an `InternalError`. */
export const apiErrorOf = (failure: unknown): ApiError =>
  isApiError(failure) ? failure : new InternalError({ cause: failure })

/** Fails only with `clientGone`, if there is nobody to answer. */
export const answering = <E, R>(
  served: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  { complete, errorOf, requestId, url }: Answering
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> =>
  Effect.matchCauseEffect(served, {
    onFailure: (cause) =>
      isGone(cause)
        ? Effect.failCause(clientGone)
        : Effect.gen(function* () {
            const error = Cause.isInterruptedOnly(cause)
              ? new ServiceUnavailable({ cause: "The request was interrupted" })
              : yield* errorOf(Cause.squash(cause))
            yield* report(error, cause)
            yield* annotateSpan(errorAttributes(error))
            return complete(responseTo(url)(error, requestId))
          }),
    onSuccess: (response) => Effect.succeed(complete(response))
  })

const maxNotificationBytes = 1024 * 1024

const received = HttpServerResponse.unsafeJson({ received: true })

type Entry = (
  message: IncomingMessage
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  UnreadableRequest | UnsupportedMediaType | SignatureInvalid | ServiceUnavailable
>

/** Handles an entry's request with its exact bytes. The body is not read if the header shows that it is not signed. */
const serving =
  ({ examine, signatureHeader: name }: Inbound["Type"], receive: Inbound["Type"]["receive"]): Entry =>
  (message) => {
    // Node joins repeated headers of this name
    const signatureHeader = headerOf(message, name)
    return Effect.zipRight(
      examine(signatureHeader),
      Effect.matchEffect(readMessage(message, maxNotificationBytes), {
        // A sender that disconnected is not a defect: the HTTP server ends the request
        onFailure: (error) => (error._tag === "BodyLost" ? Effect.die(error) : Effect.fail(error)),
        onSuccess: (body) => Effect.as(receive(body, signatureHeader), received)
      })
    )
  }

const inboundEntries = Effect.map(
  Inbound,
  (inbound): Readonly<Record<keyof typeof entryPaths, Entry>> => ({
    receive: serving(inbound, inbound.receive),
    receiveThin: serving(inbound, inbound.receiveThin)
  })
)

/** Serves `InboundApi` through the API router, for paths in another spelling than those the server handles directly. */
export const inboundHttp = HttpApiBuilder.group(BaseApi.add(InboundApi), "inbound", (handlers) =>
  Effect.map(inboundEntries, ({ receive, receiveThin }) =>
    handlers
      .handleRaw("receive", ({ request }) => receive(messageOf(request)))
      .handleRaw("receiveThin", ({ request }) => receiveThin(messageOf(request)))
  )
)

/**
 * Serves the provider's entries directly, with the same telemetry and the same answers as everything else. The provider
 * sends more than all integrators together, and the platform and the router cost as much per request as accepting a
 * notification. If the sender disconnects before the answer, its notification is still stored. On a server other than
 * ours, the router serves the entries.
 */
export const entriesLayer = (options: ObservingOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const listeners = Option.getOrNull(yield* Effect.serviceOption(DirectListeners))
      if (listeners === null) return
      const observed = yield* observing(options)
      const entries = yield* inboundEntries
      for (const name of Struct.keys(entryPaths)) listeners.set(entryPaths[name], listenerOf(entries[name], observed))
    })
  )

const listenerOf =
  (entry: Entry, observed: Effect.Effect.Success<ReturnType<typeof observing>>): DirectListener =>
  (runtime, message, response) => {
    const requestId = newRequestId()
    const facts: RequestFacts["Type"] = { span: null, attributes: {} }
    const request = headOf(message)
    const answered = answering(entry(message), {
      url: request.url,
      requestId,
      complete: (answer) => answer,
      errorOf: (failure) => Effect.succeed(apiErrorOf(failure))
    })
    const served = observed(
      { request, requestId, facts, routeOf: () => request.url },
      // Inside `observed`, so that the log line says 499 if the sender has left
      Effect.flatMap(answered, (answer) => (response.closed ? Effect.failCause(clientGone) : Effect.succeed(answer)))
    )
    Runtime.runFork(
      runtimeOf(runtime, requestId, facts),
      Effect.matchCause(served, {
        onFailure: () => {},
        onSuccess: (answer) => write(response, requestId, answer)
      }),
      {
        updateRefs: (refs, fiberId) =>
          FiberRefs.updateAs(refs, {
            fiberId,
            fiberRef: FiberRef.currentLogAnnotations,
            value: HashMap.make(["requestId", requestId])
          })
      }
    )
  }

const headOf = ({ headers, socket, url = "" }: IncomingMessage): RequestHead => ({
  method: "POST",
  url,
  headers,
  remoteAddress: Option.fromNullable(socket.remoteAddress)
})

const runtimeOf = (
  { context, fiberRefs, runtimeFlags }: Runtime.Runtime<never>,
  requestId: string,
  facts: RequestFacts["Type"]
): Runtime.Runtime<never> =>
  Runtime.make({
    context: Context.unsafeMake(
      new Map<string, unknown>(context.unsafeMap).set(RequestId.key, requestId).set(RequestFacts.key, facts)
    ),
    fiberRefs,
    runtimeFlags
  })

const utf8 = new TextDecoder()

const write = (
  response: ServerResponse,
  requestId: string,
  { body, headers, status }: HttpServerResponse.HttpServerResponse
): void => {
  // A refusal may have ended it already
  if (response.writableEnded) return
  response.writeHead(status, { ...headers, "request-id": requestId })
  // As text, which Node writes in one piece with the head
  response.end(body._tag === "Uint8Array" ? utf8.decode(body.body) : undefined)
}
