import { Effect, Schema } from "effect"
import { type Command, form, optional, process as running } from "../Command.ts"
import { readApiKey, serviceOptions } from "../ServiceOptions.ts"

/**
 * `mcp`: the tool server over standard input and output, for clients that start a process (contract 5.7).
 *
 * It forwards each message to a running service, with an API key, so the process needs neither the database nor the
 * keys that encrypt its secrets, may only do what the key may do, and is limited and audited like any caller.
 */

const toolsForm = Schema.String.pipe(Schema.pattern(/^[a-z_]{1,64}(?:,[a-z_]{1,64}){0,99}$/))

export const mcpCommands: ReadonlyArray<Command> = [
  running({
    name: "mcp",
    summary: "Serve the tools to an MCP client on standard input and output, through a running service.",
    example: "--url https://payments.example --api-key-env PAYMENTS_KEY",
    input: Schema.Struct({
      ...serviceOptions,
      tools: optional(
        form(
          toolsForm,
          "<name,name>",
          "Only these tools, such as list_products,get_product. Default: all that the key may call.",
          "must be 1 to 100 tool names, separated by commas"
        )
      )
    }),
    run: Effect.fnUntraced(function* ({ apiKeyEnv, tools, url }) {
      const key = yield* readApiKey(apiKeyEnv)
      // Other commands should not wait for the protocol's package to load
      const { bridge } = yield* Effect.promise(() => import("../McpBridge.ts"))
      const chosen = tools === undefined ? {} : { tools: tools.split(",") }
      yield* bridge({ url, key, ...chosen, input: process.stdin, output: process.stdout })
    })
  })
]
