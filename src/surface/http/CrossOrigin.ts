import { type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { workspaceHeader } from "../../identity/Authentication.ts"
import { isApiPath } from "../../platform/kit/ApiPaths.ts"

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
