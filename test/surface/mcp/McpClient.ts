import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv"
import type { JsonSchemaType } from "@modelcontextprotocol/sdk/validation/types.js"
import { Effect, Predicate, type Scope } from "effect"

/** What a tool answered: its JSON, and whether it was a refusal. */
export interface ToolAnswer {
  readonly isError: boolean
  readonly json: Record<string, unknown>
  readonly meta: Record<string, unknown> | undefined
}

export interface McpClient {
  readonly client: Client
  readonly call: (name: string, args?: Record<string, unknown>) => Effect.Effect<ToolAnswer>
}

/**
 * The client's usual validator, for all sessions of a test worker: `ajv` compiles an object that it knows only once, and to
 * compile the output schemas of all tools takes longer than most tests.
 */
class SharedValidator extends AjvJsonSchemaValidator {
  private readonly known = new Map<string, JsonSchemaType>()

  override getValidator<T>(schema: JsonSchemaType) {
    const text = JSON.stringify(schema)
    const known = this.known.get(text) ?? schema
    this.known.set(text, known)
    return super.getValidator<T>(known)
  }
}

const jsonSchemaValidator = new SharedValidator()

/** The protocol's own client, connected; it checks answers against the tools' output schemas. */
export const connectTo = (transport: Transport): Effect.Effect<McpClient, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "test", version: "1.0.0" }, { jsonSchemaValidator })
      await client.connect(transport)
      // The client keeps the output schemas that it learns here
      await client.listTools()
      return client
    }),
    (client) => Effect.promise(() => client.close())
  ).pipe(
    Effect.map((client) => ({
      client,
      call: (name, args = {}) =>
        Effect.promise(async () => {
          const { content, isError, structuredContent, _meta: meta } = await client.callTool({ name, arguments: args })
          const [first] = Array.isArray(content) ? content : []
          const json: unknown = JSON.parse(String(Object(first).text))
          if (!Predicate.isRecord(json)) throw new Error("A tool answered no object")
          if (isError !== true && JSON.stringify(structuredContent) !== JSON.stringify(json)) {
            throw new Error("A tool's text is not its structured content")
          }
          return { isError: isError === true, json, meta }
        })
    }))
  )

export const overHttp = (baseUrl: string, key: string): Effect.Effect<McpClient, never, Scope.Scope> =>
  Effect.suspend(() =>
    connectTo(
      new StreamableHTTPClientTransport(new URL("/mcp", baseUrl), { requestInit: { headers: { "x-api-key": key } } })
    )
  )
