import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { type AuthenticationOptions, makeKeyAdmission } from "../../identity/AuthenticationLive.ts"
import { Principal } from "../../identity/Principal.ts"
import {
  AuthenticationRequired,
  methodNotAllowed,
  OriginNotTrusted,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { annotateSpan } from "../../platform/telemetry/Spans.ts"
import { mcpPath } from "../../server/RpcError.ts"
import { makeResources } from "./Resources.ts"
import { chosenTools } from "./ToolFilter.ts"
import { makeTools } from "./Tools.ts"

/**
 * The tool server over Streamable HTTP (contract 5.7), without sessions: any process answers any request. Behind the
 * same edge as the API, with the same keys, rate limits and bounds: one message per request, since each takes one
 * token.
 */

export type McpOptions = Pick<AuthenticationOptions, "trustedOrigins">

/** The headers that the protocol reads unchanged; the key is not one of them. */
const protocolHeaders = ["content-type", "mcp-protocol-version", "mcp-session-id"]

/** The media types that the protocol requires clients to accept. */
const bothForms = "application/json, text/event-stream"

/** Whether a client accepts JSON, the form of every answer; the protocol requires clients to name both forms. */
const takesJson = (accept: string): boolean =>
  /(?:^|,)\s*(?:\*\/\*|application\/(?:\*|json))\s*(?:[;,]|$)/i.test(accept)

const headersOf = ({ headers }: HttpServerRequest.HttpServerRequest): Record<string, string> => {
  const { accept = "*/*" } = headers
  return Object.fromEntries([
    ["accept", takesJson(accept) ? bothForms : accept],
    ...protocolHeaders.flatMap((name) => {
      const value = headers[name]
      return value === undefined ? [] : [[name, value]]
    })
  ])
}

/**
 * The key of a request: in `x-api-key`, or as a bearer token, the only form that some clients can send. If there are
 * both, `x-api-key` decides.
 */
const keyOf = ({ headers }: HttpServerRequest.HttpServerRequest): string =>
  headers["x-api-key"] || (/^bearer +(\S+) *$/i.exec(headers["authorization"] ?? "")?.[1] ?? "")

/**
 * Refuses untrusted origins: a page that uses its visitor's browser to reach a service in a private network sends an
 * `Origin` (DNS rebinding).
 */
const requireKnownOrigin = (trusted: ReadonlySet<string>, { headers }: HttpServerRequest.HttpServerRequest) => {
  const { origin } = headers
  return origin === undefined || trusted.has(origin)
    ? Effect.void
    : new OriginNotTrusted({
        message: "The tool server accepts no requests from pages that the service does not trust."
      })
}

/** The protocol's package, loaded once by the first request: a process without agents never loads it. */
const protocol = Effect.promise(() => import("./McpServer.ts"))

const makeHandler = Effect.fnUntraced(function* (options: McpOptions) {
  const tools = yield* makeTools
  const resources = yield* makeResources
  const admit = yield* makeKeyAdmission
  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (request.method !== "POST") {
      // There is no stream to listen to and no session to end
      return yield* methodNotAllowed(request.method, ["POST"])
    }
    yield* requireKnownOrigin(options.trustedOrigins, request)
    const key = keyOf(request)
    if (key === "") {
      return yield* new AuthenticationRequired({
        message: "Send an API key in the x-api-key header, or as `Authorization: Bearer`."
      })
    }
    const principal = yield* admit(key)
    yield* annotateSpan({
      "organization.id": principal.organizationId,
      environment: principal.environment,
      "author.kind": principal.author.kind,
      "author.id": principal.author.id
    })
    const json = yield* request.json
    if (Array.isArray(json)) {
      return yield* new ValidationFailed({ message: "Send one message per request." })
    }
    const offered = { tools: yield* chosenTools(tools, request.originalUrl), resources }
    const { answerMessage } = yield* protocol
    const { status, text } = yield* Effect.provideService(
      answerMessage(offered, { headers: headersOf(request), json }),
      Principal,
      principal
    )
    return text === ""
      ? HttpServerResponse.empty({ status })
      : HttpServerResponse.text(text, { status, contentType: "application/json" })
  })
})

export const mcpHttp = (options: McpOptions) =>
  HttpApiBuilder.Router.use((router) => Effect.flatMap(makeHandler(options), (handler) => router.all(mcpPath, handler)))
