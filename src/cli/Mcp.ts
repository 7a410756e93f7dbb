import { Command, Options } from "@effect/cli"
import { Config, Effect, Option } from "effect"
import { CommandFailed } from "./Failure.ts"
import { formOption } from "./Fields.ts"
import { described, type KnownCommand } from "./Synopsis.ts"

/**
 * `mcp`: the tool server over standard input and output, for clients that start a process (contract 5.7).
 *
 * It forwards each message to a running service, with an API key, so the process needs neither the database nor the
 * keys that encrypt its secrets, may only do what the key may do, and is limited and audited like any caller.
 */

const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

/** Parses the URL of the service: https, or http on this machine, so that the key can't be read on its way. */
const parseUrl = (text: string): Option.Option<URL> =>
  Option.filter(
    Option.liftThrowable((text: string) => new URL(text))(text),
    ({ hostname, protocol }) => protocol === "https:" || (protocol === "http:" && isLoopback(hostname))
  )

const urlOption = formOption("url", parseUrl, "must be an https URL, or an http URL of this machine").pipe(
  Options.withPseudoName("<url>"),
  Options.withDefault(new URL("http://127.0.0.1:8080")),
  Options.withDescription("The service's URL: its PUBLIC_URL. Default: http://127.0.0.1:8080.")
)

const keyOption = formOption(
  "api-key-env",
  (name) => (/^[A-Za-z_]\w*$/.test(name) ? Option.some(name) : Option.none()),
  "must be the name of an environment variable"
).pipe(
  Options.withPseudoName("<name>"),
  Options.withDefault("CONNECTED_PAYMENTS_API_KEY"),
  Options.withDescription(
    "The environment variable that holds the API key, with a webhook-endpoints scope. Default: CONNECTED_PAYMENTS_API_KEY."
  )
)

const readKey = (name: string) =>
  Config.redacted(name).pipe(
    Effect.mapError(() => new CommandFailed({ message: `Put the API key into the environment variable ${name}.` }))
  )

/** The command that serves a client on standard input and output. */
export const mcp = described(
  Command.make("mcp", { url: urlOption, keyVariable: keyOption }, ({ keyVariable, url }) =>
    Effect.gen(function* () {
      const key = yield* readKey(keyVariable)
      // Other commands should not wait for the protocol's package to load
      const { bridge } = yield* Effect.promise(() => import("./McpBridge.ts"))
      yield* bridge({ url, key, input: process.stdin, output: process.stdout })
    })
  ),
  {
    command: "mcp",
    summary: "Serve the webhook tools to an MCP client on standard input and output, through a running service.",
    example: "--url https://payments.example --api-key-env PAYMENTS_KEY"
  }
)

/** The command, for the help. */
export const mcpCommands: ReadonlyArray<KnownCommand> = [mcp.known]
