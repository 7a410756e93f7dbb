import { createHash } from "node:crypto"
import { type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { isApiPath } from "../kit/ApiPaths.ts"
import { hasEntityTag } from "../kit/EntityTag.ts"

/**
 * What lets a client read the same thing again for less: an answer to a GET of the API carries a tag, and a client that
 * names it in `If-None-Match` gets 304 without a body while the answer is the same (RFC 9110, 8.8.3 and 13.1.2).
 *
 * The tag is a hash of the very bytes that this caller would get now, after authentication, permission and filters. So
 * it holds nothing that a caller who guesses it does not have already: another tenant's tag, or one from before a
 * change of role, gets 304 only if this caller's own answer has the same bytes.
 */

/** The largest body that gets a tag, in bytes: hashing it takes less than writing it as JSON took. */
export const largestTaggedBody = 256 * 1024

/** A browser keeps the answer for its own user at most, and asks each time whether it still holds. */
const cacheControl = "private, no-cache"

/**
 * An answer to a reading of the API with what it says of caching, and with its tag if it is a success; 304 in its place
 * if the client has it. Other answers, and those that speak of caching themselves, are returned as they are.
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
    return HttpServerResponse.setHeader(response, "cache-control", cacheControl)
  }
  const etag = `"${createHash("sha256").update(body.body).digest("base64url")}"`
  const headers = { "cache-control": cacheControl, etag }
  if (!hasEntityTag(request.headers["if-none-match"], etag)) return HttpServerResponse.setHeaders(response, headers)
  const { "content-length": _length, "content-type": _type, ...others } = response.headers
  return HttpServerResponse.empty({ status: 304, headers: { ...others, ...headers }, cookies })
}
