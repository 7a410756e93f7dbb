import { type HttpServerRequest, HttpServerResponse } from "@effect/platform"

/**
 * What browsers ask for before a page of another origin may send a signed-in person's requests and read the answers
 * (CORS, <https://fetch.spec.whatwg.org/#http-cors-protocol>): permission for exactly the origins that the operator
 * trusts, and no word about it to any other.
 */

/** Where a session counts: the API and the identity routes. The tool server and the service's own pages are for others. */
const shared = /^\/(?:v2|identity)\//

/**
 * What a page may send beside what every page may: the body's type, and what operations and traces read. Not
 * `x-api-key`: keys are for servers alone (contract 2.1).
 */
const requestHeaders = ["content-type", "idempotency-key", "traceparent", "x-request-id"]

/** What a page may read of an answer beside its body and type. */
const responseHeaders = [
  "allow",
  "idempotent-replayed",
  "link",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "ratelimit-scope",
  "request-id",
  "retry-after"
]

/** What a page may send to where nothing is served: the answer says so. */
const anyMethod = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

/** How long a browser may keep a permission, in seconds: an origin that is trusted no more is refused soon. */
const permissionSeconds = 600

/** What the edge asks for each request. */
export interface CrossOrigin {
  /** The headers that go with the request's answer, a refusal included: the page is to see its code. */
  readonly headersOf: (request: HttpServerRequest.HttpServerRequest, path: string) => Record<string, string>
  /** The answer to a trusted page's question whether it may send a request; undefined if it is something else. */
  readonly preflight: (
    request: HttpServerRequest.HttpServerRequest,
    path: string
  ) => HttpServerResponse.HttpServerResponse | undefined
}

/**
 * @param trustedOrigins the origins whose pages may act in a signed-in person's name
 * @param methodsAt the methods of a path; none where nothing is served
 */
export const makeCrossOrigin = (
  trustedOrigins: ReadonlySet<string>,
  methodsAt: (path: string) => ReadonlyArray<string>
): CrossOrigin => {
  const trustedOrigin = ({ headers: { origin } }: HttpServerRequest.HttpServerRequest): string | undefined =>
    origin !== undefined && trustedOrigins.has(origin) ? origin : undefined
  return {
    headersOf: (request, path) => {
      if (!shared.test(path)) return {}
      const origin = trustedOrigin(request)
      // A cache must not show one page the answer to another
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
      if (!asks || !shared.test(path) || trustedOrigin(request) === undefined) return undefined
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
