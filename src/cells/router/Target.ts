import type { IncomingHttpHeaders } from "node:http"
import { parseHeader } from "@effect/platform/Cookies"
import { Schema } from "effect"
import { sessionCookie } from "../../identity/Authentication.ts"
import { entryPaths } from "../../inbound/Api.ts"
import { OrganizationId } from "../../kit/Ids.ts"
import { decodedPathOf } from "../../kit/RequestPath.ts"
import { mcpPath } from "../../mcp/RpcError.ts"
import { type RoutingTag, tagOfKey, tagOfToken } from "../RoutingTag.ts"

/**
 * What a request is routed by: pure, from its request line and headers alone. It reads a path as the cells' own router
 * does, so that no spelling leads elsewhere than the cell reads. What it does not recognize goes to the home cell, which
 * answers as a single installation would.
 */

/** The part of a body that says where a request belongs. */
export type BodyPart = "notification" | "thin notification" | "email" | "token"

/** Where a request belongs. */
export type Target =
  | { readonly by: "organization"; readonly id: OrganizationId }
  | { readonly by: "tag"; readonly tag: RoutingTag }
  | { readonly by: "body"; readonly part: BodyPart }
  /** A page or image that exactly one cell has; nothing in the request says which. */
  | { readonly by: "search"; readonly path: string }
  /** What every cell answers alike. */
  | { readonly by: "anything"; readonly tag: RoutingTag | undefined }
  | { readonly by: "health"; readonly probe: "live" | "ready" }
  | { readonly by: "home" }

const home: Target = { by: "home" }

const isOrganizationId = Schema.is(OrganizationId)

/**
 * The parts of a path, as the cells' router reads them: decoded, but for characters that separate parts, and without a
 * slash at the end. Undefined if its escapes can't be decoded.
 */
export const partsOf = (url: string): ReadonlyArray<string> | undefined => {
  const path = decodedPathOf(url)
  if (path?.startsWith("/") !== true) return undefined
  return (path.length > 1 && path.endsWith("/") ? path.slice(1, -1) : path.slice(1)).split("/")
}

const organizationTarget = (part: string): Target => {
  try {
    const id = decodeURIComponent(part).toLowerCase()
    return isOrganizationId(id) ? { by: "organization", id } : home
  } catch {
    return home
  }
}

const byTag = (tag: RoutingTag | undefined): Target => (tag === undefined ? home : { by: "tag", tag })

/** The tag of the session's cookie, read as the cells read it. */
const cookieTag = ({ cookie }: IncomingHttpHeaders): RoutingTag | undefined => {
  if (cookie === undefined) return undefined
  const cookies = parseHeader(cookie)
  return Object.hasOwn(cookies, sessionCookie) ? tagOfToken(cookies[sessionCookie] ?? "") : undefined
}

const apiKey = (headers: IncomingHttpHeaders): string => {
  const key = headers["x-api-key"]
  return typeof key === "string" ? key : ""
}

/** The key of a request to the tool server, which also takes it as a bearer token. */
const toolKey = (headers: IncomingHttpHeaders): string =>
  apiKey(headers) || (/^bearer +(\S+) *$/i.exec(headers.authorization ?? "")?.[1] ?? "")

/** Where a token in the body decides, by path. Pages of the same paths are read by GET. */
const bodies: ReadonlyMap<string, BodyPart> = new Map([
  [entryPaths.receive, "notification"],
  [entryPaths.receiveThin, "thin notification"],
  ["/identity/sign-in-links", "email"],
  ["/identity/session", "token"],
  ["/identity/sign-in/preview", "token"],
  ["/identity/invitation", "token"],
  ["/identity/invitation/preview", "token"]
])

const healthProbe = (parts: ReadonlyArray<string>): "live" | "ready" | undefined =>
  parts.length === 2 && parts[0] === "health" && (parts[1] === "live" || parts[1] === "ready") ? parts[1] : undefined

/** What a request is routed by. */
export const targetOf = (method: string, url: string, headers: IncomingHttpHeaders): Target => {
  const parts = partsOf(url)
  if (parts === undefined) return home
  const [first, second, third] = parts
  if (first === "v2" && second === "organizations" && third !== undefined) return organizationTarget(third)
  const path = `/${parts.join("/")}`
  const part = method === "POST" ? bodies.get(path) : undefined
  if (part !== undefined) return { by: "body", part }
  const probe = healthProbe(parts)
  if (probe !== undefined) return { by: "health", probe }
  if (path === mcpPath) return byTag(tagOfKey(toolKey(headers)))
  if (path === "/identity/api-key") return byTag(tagOfKey(apiKey(headers)))
  if ((first === "pay" || first === "product-images") && second !== undefined) {
    return { by: "search", path: `/${first}/${second}` }
  }
  if (first === "identity" && method !== "OPTIONS") return byTag(cookieTag(headers))
  return method === "GET" || method === "HEAD" ? { by: "anything", tag: cookieTag(headers) } : home
}
