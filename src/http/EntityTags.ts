import { createHash } from "node:crypto"
import { type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { isApiPath } from "../kit/ApiPaths.ts"
import { hasEntityTag } from "../kit/EntityTag.ts"

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
const cacheControl = "private, no-cache"

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
    return HttpServerResponse.setHeader(response, "cache-control", cacheControl)
  }
  const etag = `"${createHash("sha256").update(body.body).digest("base64url")}"`
  const headers = { "cache-control": cacheControl, etag }
  if (!hasEntityTag(request.headers["if-none-match"], etag)) return HttpServerResponse.setHeaders(response, headers)
  const { "content-length": _length, "content-type": _type, ...others } = response.headers
  return HttpServerResponse.empty({ status: 304, headers: { ...others, ...headers }, cookies })
}
