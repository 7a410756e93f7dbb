import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js"
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from "@modelcontextprotocol/sdk/types.js"
import { Effect, Runtime } from "effect"
import type { Principal } from "../identity/Principal.ts"
import { version } from "../kit/Version.ts"
import type { Tools } from "./Tools.ts"

/** The protocol's side of the tool server, by its official SDK. */

/** What the client's model is told of the tools as a whole. */
const instructions =
  "Manages where connected-payments sends an organization's signed webhook events, and what became of them. The API key decides the organization and the environment: a pk_live_ key works in production, every other one in the sandbox. Signing secrets are shown once: hand them over, never repeat them. A failed call answers {error, code, fields, requestId}."

/** @param runtime the request's own: its caller, its id, its span */
const makeServer = (tools: Tools, runtime: Runtime.Runtime<Principal>): Server => {
  const server = new Server(
    { name: "connected-payments", title: "connected-payments webhooks", version },
    { capabilities: { tools: {} }, instructions }
  )
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...tools.values()].map(({ listed }) => listed) }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) => {
    const tool = tools.get(params.name)
    if (tool === undefined) {
      throw new McpError(ErrorCode.InvalidParams, "There is no such tool; tools/list answers those that there are.")
    }
    return Runtime.runPromise(runtime)(tool.call(params.arguments ?? {}), { signal })
  })
  return server
}

/** A message with the headers of its request that the protocol reads. */
export interface Message {
  readonly headers: Readonly<Record<string, string>>
  readonly json: unknown
}

/** What goes back: JSON, or nothing to what asks for no answer. */
export interface MessageAnswer {
  readonly status: number
  readonly text: string
}

/**
 * Answers one message, by a server of its own: without sessions, so that any process can answer any of a client's
 * messages. A call that nobody waits for any more is interrupted.
 */
export const answerMessage = (tools: Tools, message: Message): Effect.Effect<MessageAnswer, never, Principal> =>
  Effect.flatMap(Effect.runtime<Principal>(), (runtime) =>
    Effect.acquireUseRelease(
      Effect.sync(() => makeServer(tools, runtime)),
      (server) =>
        Effect.promise(async () => {
          const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
          await server.connect(transport)
          const response = await transport.handleRequest(
            // Nothing goes by the address
            new Request("http://localhost/", { method: "POST", headers: message.headers }),
            { parsedBody: message.json }
          )
          return { status: response.status, text: await response.text() }
        }),
      (server) => Effect.promise(() => server.close())
    )
  )
