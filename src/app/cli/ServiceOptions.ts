import { Config, Effect, identity, Redacted, Schema } from "effect"
import { form } from "./Command.ts"
import { CommandFailed } from "./Failure.ts"
import { PlainHttpUrl, variableOption } from "./Fields.ts"

/** The options of commands that go through a running service: its URL and an API key, and nothing else. */

const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

/** `--url` and `--api-key-env`: keys are not arguments, which other users of the machine can read. */
export const serviceOptions = {
  url: form(
    // https, or http on this machine, so that the key can't be read on its way
    PlainHttpUrl.pipe(Schema.filter(({ hostname, protocol }) => protocol === "https:" || isLoopback(hostname))),
    "<url>",
    "The service's URL: its PUBLIC_URL. Default: http://127.0.0.1:8080.",
    "must be an https URL, or an http URL of this machine, without a user name or a password"
  ).pipe(Schema.optionalWith({ exact: true, default: () => new URL("http://127.0.0.1:8080") })),
  apiKeyEnv: variableOption(
    "The environment variable that holds the API key, with the permissions that the command needs. Default: CONNECTED_PAYMENTS_API_KEY."
  ).pipe(Schema.optionalWith({ exact: true, default: () => "CONNECTED_PAYMENTS_API_KEY" }))
}

/** The secret in an environment variable; one that was pasted together with quotes or spaces is refused. */
export const readSecret = (
  what: string,
  variable: string,
  clean: (secret: string) => string = identity
): Effect.Effect<Redacted.Redacted, CommandFailed> =>
  Config.redacted(variable).pipe(
    Effect.map((secret) => Redacted.make(clean(Redacted.value(secret)))),
    Effect.filterOrFail((secret) => Redacted.value(secret) !== ""),
    Effect.mapError(() => new CommandFailed({ message: `Put the ${what} into the environment variable ${variable}.` })),
    Effect.filterOrFail(
      (secret) => /^[^\s"'`]+$/.test(Redacted.value(secret)),
      () => new CommandFailed({ message: `The ${what} in ${variable} has a space, a line break or quotes in it.` })
    )
  )

export const readApiKey = (variable: string): Effect.Effect<Redacted.Redacted, CommandFailed> =>
  readSecret("API key", variable, (key) => key.trim())
