import { createHash } from "node:crypto"
import {
  HttpApiBuilder,
  HttpApiError,
  HttpMethod,
  HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "@effect/platform"
import { Context, Effect, FiberRef, HashMap, Struct } from "effect"
import { workspaceHeader } from "../../identity/Authentication.ts"
import { refusal } from "../../platform/bounds/Refusals.ts"
import {
  type ApiError,
  isApiError,
  methodNotAllowed,
  ResourceNotFound,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { hasEntityTag, newRequestId, RequestId, ResponseHeaders } from "../../platform/kit/Request.ts"
import { isApiPath, pathOf } from "../../platform/kit/RequestPath.ts"
import { checkoutReturnPaths } from "../../platform/settings/CheckoutReturnPaths.ts"
import { RequestFacts } from "../../platform/telemetry/Spans.ts"
import { withBoundedJson } from "../../server/Body.ts"
import { mcpPath } from "../../server/RpcError.ts"
import { Api, operations } from "../contract/Api.ts"
import { documentPaths } from "../docs/ApiReference.ts"
import { eventSchemaPaths } from "../docs/EventSchemas.ts"
import { guidePaths } from "../docs/GuidePages.ts"
import { archivePath, packageSummaries, packagesPath } from "../packages/Paths.ts"
import { answering, documented } from "./Answers.ts"
import { consolePath, isConsolePath } from "./console/Paths.ts"
import { frontPagePath } from "./FrontPage.ts"
import { unknownRoute } from "./NearestRoutes.ts"
import { decodePart, fromDecodeError, operationsAt, refuseEmptyId, refuseQuery } from "./RefusedRequest.ts"
import { type ObservingOptions, observing } from "./RequestSpan.ts"

/**
 * CORS (<https://fetch.spec.whatwg.org/#http-cors-protocol>): lets pages of exactly the origins that the operator
 * trusts send a signed-in person's requests and read the answers. Other origins get no CORS headers.
 */

/**
 * Headers that a page may send beyond the standard ones: the body's type, and those that operations and traces read.
 * Not `x-api-key`: keys are for servers only (contract 2.1).
 */
const requestHeaders = [
  "content-type",
  "idempotency-key",
  "if-none-match",
  workspaceHeader,
  "traceparent",
  "x-request-id"
]

/** Headers of an answer that a page may read, beyond the standard ones. */
const responseHeaders = [
  "allow",
  "etag",
  "idempotent-replayed",
  "link",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "ratelimit-scope",
  "request-id",
  "retry-after"
]

/** The methods allowed on unknown paths, so that the page can read the 404. */
const anyMethod = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

/**
 * How long a browser may cache a preflight answer, in seconds: short, so that an origin that is no longer trusted is
 * soon refused.
 */
const permissionSeconds = 600

/** The CORS decisions that the edge needs for each request. */
export interface CrossOrigin {
  /** The headers of the request's answer, including refusals, so that the page can read the code. */
  readonly headersOf: (request: HttpServerRequest.HttpServerRequest, path: string) => Record<string, string>
  /** The answer to a trusted page's preflight request; undefined for any other request. */
  readonly preflight: (
    request: HttpServerRequest.HttpServerRequest,
    path: string
  ) => HttpServerResponse.HttpServerResponse | undefined
}

/**
 * @param trustedOrigins the origins whose pages may act for a signed-in person
 * @param methodsAt the methods of a path; none if nothing is served there
 */
export const makeCrossOrigin = (
  trustedOrigins: ReadonlySet<string>,
  methodsAt: (path: string) => ReadonlyArray<string>
): CrossOrigin => {
  const trustedOrigin = ({ headers: { origin } }: HttpServerRequest.HttpServerRequest): string | undefined =>
    origin !== undefined && trustedOrigins.has(origin) ? origin : undefined
  return {
    headersOf: (request, path) => {
      if (!isApiPath(path)) return {}
      const origin = trustedOrigin(request)
      // A cache must not give one page the answer to another
      const vary = { vary: "origin" }
      return origin === undefined
        ? vary
        : {
            ...vary,
            "access-control-allow-origin": origin,
            "access-control-allow-credentials": "true",
            ...(request.method === "OPTIONS" ? {} : { "access-control-expose-headers": responseHeaders.join(", ") })
          }
    },
    preflight: (request, path) => {
      const asks = request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined
      if (!asks || !isApiPath(path) || trustedOrigin(request) === undefined) return undefined
      const methods = methodsAt(path)
      return HttpServerResponse.empty({
        status: 204,
        headers: {
          "access-control-allow-methods": (methods.length > 0 ? methods : anyMethod).join(", "),
          "access-control-allow-headers": requestHeaders.join(", "),
          "access-control-max-age": String(permissionSeconds)
        }
      })
    }
  }
}

/**
 * Conditional GETs: an answer to a GET of the API carries an ETag, and a client that sends it in `If-None-Match` gets
 * 304 without a body while the answer is the same (RFC 9110, 8.8.3 and 13.1.2).
 *
 * The tag is a hash of the exact bytes that this caller would get now, after authentication, permission and filters. So
 * a guessed tag reveals nothing new: another tenant's tag, or one from before a change of role, gets 304 only if this
 * caller's own answer has the same bytes.
 */

/** The largest body that gets a tag, in bytes: hashing it takes less than writing it as JSON took. */
export const largestTaggedBody = 256 * 1024

/** Only the user's own browser may store the answer, and it must revalidate it each time. */
const answerCaching = "private, no-cache"

/**
 * Adds Cache-Control to the answer to a GET of the API, and an ETag to a success of at most 256 KiB, or returns 304 if
 * the client's tag matches. Other answers, and those with their own Cache-Control, are returned unchanged.
 *
 * @param path the request's path, without its query
 */
export const withCaching = (
  request: HttpServerRequest.HttpServerRequest,
  path: string,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => {
  const isReading = request.method === "GET" || request.method === "HEAD"
  if (!isReading || !isApiPath(path) || response.headers["cache-control"] !== undefined) return response
  const { body, cookies, status } = response
  if (status !== 200 || body._tag !== "Uint8Array" || body.body.length > largestTaggedBody) {
    return HttpServerResponse.setHeader(response, "cache-control", answerCaching)
  }
  const etag = `"${createHash("sha256").update(body.body).digest("base64url")}"`
  const headers = { "cache-control": answerCaching, etag }
  if (!hasEntityTag(request.headers["if-none-match"], etag)) return HttpServerResponse.setHeaders(response, headers)
  const { "content-length": _length, "content-type": _type, ...others } = response.headers
  return HttpServerResponse.empty({ status: 304, headers: { ...others, ...headers }, cookies })
}

/** The pages that are served besides the operations, by GET only. */
const pages: ReadonlySet<string> = new Set<string>([
  frontPagePath,
  ...Object.values(documentPaths),
  ...guidePaths,
  ...Object.values(checkoutReturnPaths),
  packagesPath,
  ...Struct.keys(packageSummaries).map(archivePath),
  ...eventSchemaPaths
])

/** As for the router, a slash at the end makes no difference. */
const isPage = (path: string): boolean => pages.has(path.replace(/\/$/, "") || frontPagePath)

const badEscapes =
  "in the path has escapes that can't be decoded: each % needs two hexadecimal digits, all of them UTF-8"

/** The methods of a path, with HEAD for every GET. */
const methodsOf = (methods: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])))
]

/** The methods of the operations and pages at a path; empty if nothing is served there. */
const methodsAt = (path: string): ReadonlyArray<string> =>
  methodsOf([...operationsAt(path).map(({ operation }) => operation.method), ...(isPage(path) ? ["GET"] : [])])

const fromUnknownRoute = (request: HttpServerRequest.HttpServerRequest): ApiError => {
  const path = pathOf(request.url)
  const allow = methodsAt(path)
  if (allow.length === 0) {
    return new ResourceNotFound({ message: unknownRoute(path) })
  }
  // The router skips a path whose escapes can't be decoded
  const undecodable = operationsAt(path).flatMap(({ params }) =>
    Object.keys(params).filter((key) => decodePart(params[key] ?? "") === null)
  )
  return undecodable.length === 0
    ? methodNotAllowed(request.method, allow)
    : new ValidationFailed(refusal(new Map(undecodable.map((name) => [name, badEscapes]))))
}

const toApiError = (failure: unknown, request: HttpServerRequest.HttpServerRequest): Effect.Effect<ApiError> => {
  if (failure instanceof HttpApiError.HttpApiDecodeError) {
    return fromDecodeError(failure, request)
  }
  if (failure instanceof HttpServerError.RouteNotFound) {
    return Effect.succeed(fromUnknownRoute(request))
  }
  if (failure instanceof HttpServerError.RequestError) {
    return Effect.succeed(
      isApiError(failure.cause) ? failure.cause : new ValidationFailed({ message: "The request could not be read." })
    )
  }
  return Effect.succeed(documented(failure))
}

export interface EdgeOptions extends ObservingOptions {
  /** Origins whose pages may act for a signed-in person, and read the answers. */
  readonly trustedOrigins: ReadonlySet<string>
}

/**
 * The middleware around everything that the platform serves: gives each request its id, bounds its body, and answers
 * every failure (a decode error, an unknown route, a defect) in the documented form.
 */
export const edge = (options: EdgeOptions) => {
  const crossOrigin = makeCrossOrigin(options.trustedOrigins, methodsAt)
  return HttpApiBuilder.middleware(
    Api,
    Effect.map(observing(options), (observed) => {
      return (app) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (original) => {
          const requestId = newRequestId()
          // Nothing reads the body if the method has none
          const request = HttpMethod.hasBody(original.method) ? withBoundedJson(original) : original
          const path = pathOf(original.url)
          const headers: Record<string, string> = {
            "request-id": requestId,
            ...crossOrigin.headersOf(original, path)
          }
          const complete = (response: HttpServerResponse.HttpServerResponse) =>
            HttpServerResponse.setHeaders(withCaching(original, path, response), headers)
          const preflight = crossOrigin.preflight(original, path)
          const served: Effect.Effect<
            HttpServerResponse.HttpServerResponse,
            ApiError,
            HttpServerRequest.HttpServerRequest
          > =
            preflight !== undefined
              ? Effect.succeed(preflight)
              : Effect.zipRight(Effect.zipRight(refuseEmptyId(request), refuseQuery(request)), app)
          const answered = answering(served, {
            url: request.url,
            requestId,
            complete,
            errorOf: (failure) => toApiError(failure, request)
          })
          const facts: RequestFacts["Type"] = { span: null, attributes: {} }
          return Effect.zipRight(
            introduce(request, { requestId, facts, headers }),
            observed({ request, requestId, facts, routeOf: () => routeOf(original) }, answered)
          )
        })
    })
  )
}

/** The paths that are their own route: pages, and operations without parameters. */
const plainRoutes: ReadonlySet<string> = new Set([
  mcpPath,
  ...pages,
  ...operations.map(({ path }) => path).filter((path) => operationsAt(path)[0]?.operation.path === path)
])

/** The route of a request, for the names of spans: the operation's path as declared, or the page's path. */
const routeOf = (request: HttpServerRequest.HttpServerRequest): string | undefined => {
  const path = pathOf(request.url)
  if (isConsolePath(path)) return consolePath
  return plainRoutes.has(path) ? path : operationsAt(path)[0]?.operation.path
}

/** Sets the request's context for the rest of the fiber; each request has its own fiber, so nothing is reset. */
const introduce = (
  request: HttpServerRequest.HttpServerRequest,
  {
    facts,
    headers,
    requestId
  }: {
    readonly requestId: string
    readonly facts: RequestFacts["Type"]
    readonly headers: ResponseHeaders["Type"]
  }
): Effect.Effect<void> =>
  Effect.zipRight(
    FiberRef.update(FiberRef.currentLogAnnotations, HashMap.set<string, unknown>("requestId", requestId)),
    FiberRef.update(FiberRef.currentContext, (context) =>
      // One copy: each `Context.add` would create another
      Context.unsafeMake<never>(
        new Map<string, unknown>(context.unsafeMap)
          .set(HttpServerRequest.HttpServerRequest.key, request)
          .set(RequestId.key, requestId)
          .set(RequestFacts.key, facts)
          .set(ResponseHeaders.key, headers)
      )
    )
  )
