import { Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { formOption } from "./Fields.ts"
import { apiKeyOption, readApiKey, serviceUrlOption } from "./ServiceOptions.ts"
import { described, type KnownCommand } from "./Synopsis.ts"

/**
 * `mcp`: the tool server over standard input and output, for clients that start a process (contract 5.7).
 *
 * It forwards each message to a running service, with an API key, so the process needs neither the database nor the
 * keys that encrypt its secrets, may only do what the key may do, and is limited and audited like any caller.
 */

/** Names of tools, as the service takes them; it refuses those that do not exist. */
const parseTools = (text: string): Option.Option<ReadonlyArray<string>> =>
  /^[a-z_]{1,64}(?:,[a-z_]{1,64}){0,99}$/.test(text) ? Option.some(text.split(",")) : Option.none()

const toolsOption = formOption("tools", parseTools, "must be 1 to 100 names of tools with commas between").pipe(
  Options.withPseudoName("<name,name>"),
  Options.optional,
  Options.withDescription("Only these tools, such as list_products,get_product. Default: all that the key may call.")
)

/** The command that serves a client on standard input and output. */
export const mcp = described(
  Command.make(
    "mcp",
    { url: serviceUrlOption, keyVariable: apiKeyOption, tools: toolsOption },
    ({ keyVariable, tools, url }) =>
      Effect.gen(function* () {
        const key = yield* readApiKey(keyVariable)
        // Other commands should not wait for the protocol's package to load
        const { bridge } = yield* Effect.promise(() => import("./McpBridge.ts"))
        const chosen = Option.match(tools, { onNone: () => ({}), onSome: (names) => ({ tools: names }) })
        yield* bridge({ url, key, ...chosen, input: process.stdin, output: process.stdout })
      })
  ),
  {
    command: "mcp",
    summary: "Serve the tools to an MCP client on standard input and output, through a running service.",
    example: "--url https://payments.example --api-key-env PAYMENTS_KEY"
  }
)

/** The command, for the help. */
export const mcpCommands: ReadonlyArray<KnownCommand> = [mcp.known]
