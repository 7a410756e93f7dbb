import { Options } from "@effect/cli"
import { Config, Effect, Option, Redacted } from "effect"
import { CommandFailed } from "./Failure.ts"
import { formOption, plainHttpUrl } from "./Fields.ts"

/** The options of commands that go through a running service: its URL and an API key, and nothing else. */

const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

/** Parses the URL of the service: https, or http on this machine, so that the key can't be read on its way. */
const parseUrl = (text: string): Option.Option<URL> =>
  Option.filter(plainHttpUrl(text), ({ hostname, protocol }) => protocol === "https:" || isLoopback(hostname))

/** `--url`. */
export const serviceUrlOption = formOption(
  "url",
  parseUrl,
  "must be an https URL, or an http URL of this machine, without a user name or a password"
).pipe(
  Options.withPseudoName("<url>"),
  Options.withDefault(new URL("http://127.0.0.1:8080")),
  Options.withDescription("The service's URL: its PUBLIC_URL. Default: http://127.0.0.1:8080.")
)

/** `--api-key-env`: keys are not arguments, which other users of the machine can read. */
export const apiKeyOption = formOption(
  "api-key-env",
  (name) => (/^[A-Za-z_]\w*$/.test(name) ? Option.some(name) : Option.none()),
  "must be the name of an environment variable"
).pipe(
  Options.withPseudoName("<name>"),
  Options.withDefault("CONNECTED_PAYMENTS_API_KEY"),
  Options.withDescription(
    "The environment variable that holds the API key, with the permissions that the command needs. Default: CONNECTED_PAYMENTS_API_KEY."
  )
)

/** The key in the variable that `--api-key-env` names. */
export const readApiKey = (name: string): Effect.Effect<Redacted.Redacted, CommandFailed> =>
  Config.redacted(name).pipe(
    Effect.map((key) => Redacted.make(Redacted.value(key).trim())),
    Effect.filterOrFail((key) => Redacted.value(key) !== ""),
    Effect.mapError(() => new CommandFailed({ message: `Put the API key into the environment variable ${name}.` })),
    Effect.filterOrFail(isPlainSecret, () => notPlain("API key", name))
  )

/** Whether a secret was not pasted together with quotes, or read together with the line break of its file. */
export const isPlainSecret = (secret: Redacted.Redacted): boolean => /^[^\s"'`]+$/.test(Redacted.value(secret))

export const notPlain = (what: string, variable: string): CommandFailed =>
  new CommandFailed({ message: `The ${what} in ${variable} has a space, a line break or quotes in it.` })
