import { createHash } from "node:crypto"
import {
  HttpApiBuilder,
  HttpApiError,
  HttpMethod,
  HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "@effect/platform"
import {
  Array as Arr,
  Context,
  Effect,
  Either,
  FiberRef,
  HashMap,
  Option,
  ParseResult,
  Record,
  type Schema,
  Struct
} from "effect"
import { workspaceHeader } from "../../identity/Authentication.ts"
import { misspelt, wordsOf } from "../../platform/bounds/Reasons.ts"
import {
  boundedRefusals,
  maxRefusedFields,
  type Reasons,
  type RefusalNames,
  refusal
} from "../../platform/bounds/Refusals.ts"
import {
  type ApiError,
  InternalError,
  isApiError,
  methodNotAllowed,
  ResourceNotFound,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import {
  hasEntityTag,
  isApiPath,
  newRequestId,
  pathOf,
  queryTextOf,
  RequestId,
  ResponseHeaders
} from "../../platform/kit/Request.ts"
import { checkoutReturnPaths } from "../../platform/settings/CheckoutReturnPaths.ts"
import { RequestFacts } from "../../platform/telemetry/Spans.ts"
import { withBoundedJson } from "../../server/Body.ts"
import { mcpPath } from "../../server/RpcError.ts"
import { Api, operations } from "../contract/Api.ts"
import { matcher, type Operation } from "../contract/Operations.ts"
import { documentPaths } from "../docs/ApiReference.ts"
import { eventSchemaPaths } from "../docs/EventSchemas.ts"
import { guidePaths } from "../docs/GuidePages.ts"
import { archivePath, packageSummaries, packagesPath } from "../packages/Paths.ts"
import { answering, apiErrorOf, type ObservingOptions, observing } from "./Answers.ts"
import { consolePath, isConsolePath } from "./console/Paths.ts"
import { frontPagePath } from "./FrontPage.ts"

/** The routes that a caller of an unknown one may have meant: those whose paths have the most words in common with it. */

/** The start of a path that says nothing about what is asked for, as our paths and those of other APIs have it. */
const start = /^\/*(?:api\/+)?(?:v\d+\/+)?(?:organizations\/+[^/]+\/+)?(?:(?:provider|integrations|identity)\/+)?/

/** How much of a path is looked at: no route is as long. */
const longestPath = 200

/** Other words that callers use for ours, in the singular. */
const otherWords: ReadonlyMap<string, string> = new Map([
  ["destination", "endpoint"],
  ["log", "audit"],
  ["webhook", "endpoint"]
])

/** A path's words in the singular, and its number of parts; parts with digits are ids. */
const read = (path: string) => {
  const parts = path
    .slice(0, longestPath)
    .replace(start, "")
    .split("/")
    .filter((part) => part !== "")
  const words = parts.filter((part) => !/[\d:{]/.test(part)).flatMap(wordsOf)
  return { parts: parts.length, words: [...new Set(words.map((word) => word.replace(/s$/, "")))] }
}

const routes = Object.entries(
  Arr.groupBy(
    operations.filter(({ group }) => group !== "inbound"),
    ({ path }) => path
  )
).map(([path, at]) => ({ path, methods: at.map(({ method }) => method), ...read(path) }))

const known = [...new Set(routes.flatMap(({ words }) => words))]

/** How many of a path's words are looked up: no route has as many. */
const mostWords = 5

const mostNamed = 3

/** The sentence about an unknown route; names routes only as they are declared. */
const unknownRoute = (path: string): string => {
  const asked = read(path)
  const words = new Set(
    asked.words
      .slice(0, mostWords)
      .map((word) => otherWords.get(word) ?? (known.includes(word) ? word : misspelt(word, known)))
  )
  const near = routes
    .map((route) => {
      const shared = route.words.filter((word) => words.has(word)).length
      const extra = Math.abs(route.parts - asked.parts)
      return { ...route, shared, distance: (route.words.length + words.size) / (2 * shared) + extra / 100 }
    })
    .filter(({ shared }) => shared > 0)
    .toSorted((a, b) => a.distance - b.distance)
  const named = near.filter(({ distance }) => distance === near[0]?.distance).slice(0, mostNamed)
  const lines = named.flatMap(({ methods, path }) =>
    methods.map((method) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`)
  )
  return lines.length === 0
    ? "There is no such route; `/openapi.json` lists all routes."
    : `There is no such route. Did you mean ${lines.toSorted().join(" or ")}?`
}

/**
 * Collects every refused field of a request: the platform names only the first refused part, integrators get all at
 * once.
 */

const operationsAt = matcher(operations)

/** A decoded part of a path; null if its escapes are invalid, which no schema accepts. */
const decodePart = (part: string): string | null => {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}

const refusedBy = (
  schema: Option.Option<Schema.Schema<never, unknown>>,
  input: unknown,
  where: RefusalNames = {}
): Reasons =>
  Option.match(schema, {
    onNone: (): Reasons => new Map(),
    onSome: (schema) =>
      Either.match(ParseResult.decodeUnknownEither(schema, { errors: "all" })(input), {
        onLeft: (issue) => boundedRefusals(issue, where),
        onRight: (): Reasons => new Map()
      })
  })

const inPath = { where: "in the path" }
const inHeaders = { where: "in the headers" }
const inQuery = { where: "in the query", array: "given more than once" }

/** How many parameters a query may have: no operation takes more than ten. */
const maxQueryParameters = 100

const queryOf = (url: string): Record<string, string | Array<string>> => {
  // Without a prototype: a parameter could be confused with its members
  const query: Record<string, string | Array<string>> = Object.create(null)
  // With an extra question mark: the parser removes one, which may be part of the first parameter's name
  for (const [name, value] of new URLSearchParams(`?${queryTextOf(url)}`)) {
    const known = query[name]
    query[name] = known === undefined ? value : [known, value].flat()
  }
  return query
}

/** All refused fields of a request: the platform stops at the first of path, body, headers and query that fails. */
const refusedFields = Effect.fnUntraced(function* (
  operation: Operation,
  params: Record<string, string>,
  request: HttpServerRequest.HttpServerRequest
) {
  const { endpoint } = operation
  const payload = Option.isNone(endpoint.payloadSchema)
    ? new Map<string, string>()
    : yield* Effect.match(request.json, {
        onFailure: (): Reasons => new Map(),
        onSuccess: (json) => refusedBy(endpoint.payloadSchema, json)
      })
  return firstOfEach([
    refusedBy(endpoint.pathSchema, Record.map(params, decodePart), inPath),
    refusedBy(endpoint.headersSchema, request.headers, inHeaders),
    refusedBy(endpoint.urlParamsSchema, queryOf(request.url), inQuery),
    payload
  ])
})

/** Merges the reasons: a name refused in several parts of a request keeps its first reason. */
const firstOfEach = (parts: ReadonlyArray<Reasons>): Reasons => {
  const reasons = new Map<string, string>()
  for (const [field, reason] of parts.flatMap((part) => [...part])) {
    if (!reasons.has(field) && reasons.size < maxRefusedFields) reasons.set(field, reason)
  }
  return reasons
}

/** The operation that a request is for; HEAD counts as GET. */
const operationOf = (request: HttpServerRequest.HttpServerRequest) => {
  const method = request.method === "HEAD" ? "GET" : request.method
  return operationsAt(pathOf(request.url)).find(({ operation }) => operation.method === method)
}

/**
 * Refuses an object's path without its id, which the router takes for the list's: a client that has lost a product's id
 * requests `products/`.
 */
const refuseEmptyId = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<void, ValidationFailed> => {
  const path = pathOf(request.url)
  if (!path.endsWith("/") || operationsAt(path).length === 0) return Effect.void
  const [ofOne] = operationsAt(`${path}-`)
  const name = /:(\w+)$/.exec(ofOne?.operation.path ?? "")?.[1]
  if (ofOne === undefined || name === undefined) return Effect.void
  const params = Record.map({ ...ofOne.params, [name]: "" }, decodePart)
  return new ValidationFailed(refusal(refusedBy(ofOne.operation.endpoint.pathSchema, params, inPath)))
}

/**
 * Refuses query parameters that the router would hide from the operation's schema: `__proto__`, which it drops
 * silently, and too many to check one by one.
 */
const refuseQuery = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<void, ValidationFailed> => {
  const query = queryTextOf(request.url)
  if (query === "") return Effect.void
  if (query.split("&", maxQueryParameters + 1).length > maxQueryParameters) {
    return new ValidationFailed({ message: `The query has more than ${maxQueryParameters} parameters.` })
  }
  const parameters = queryOf(request.url)
  if (!Object.hasOwn(parameters, "__proto__")) return Effect.void
  const schema = Option.flatMapNullable(Option.fromNullable(operationOf(request)), ({ operation }) =>
    Option.getOrUndefined(operation.endpoint.urlParamsSchema)
  )
  return Option.isNone(schema) ? Effect.void : new ValidationFailed(refusal(refusedBy(schema, parameters, inQuery)))
}

/**
 * The error of a request that a schema refused. A *response* that its schema refuses arrives as the same error, and is
 * a bug.
 */
const fromDecodeError = Effect.fnUntraced(function* (
  error: HttpApiError.HttpApiDecodeError,
  request: HttpServerRequest.HttpServerRequest
) {
  const found = operationOf(request)
  const reasons: Reasons =
    found === undefined ? new Map() : yield* refusedFields(found.operation, found.params, request)
  const emptyBody = error.issues.length > 0 && error.issues.every(({ path }) => path.length === 0)
  if (reasons.size > 0) return new ValidationFailed(refusal(reasons))
  return emptyBody
    ? new ValidationFailed({ message: "The request body is not what the operation accepts." })
    : new InternalError({ cause: error })
})

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

/** In seconds: short, so that an origin that is no longer trusted is soon refused. */
const permissionSeconds = 600

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
  return Effect.succeed(apiErrorOf(failure))
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
