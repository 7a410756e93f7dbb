import { Effect, Option, Redacted, Schema } from "effect"
import type { LocalDefaultsFailed } from "../local/Local.ts"
import { readSettings, type SettingsError } from "../settings/Settings.ts"
import { CommandFailed } from "./Failure.ts"
import { findLocalService } from "./LocalService.ts"

/** A running provider emulator, and the platform's key for it. */
interface EmulatorAddress {
  readonly url: URL
  readonly secretKey: Redacted.Redacted
}

const nothingRuns = new CommandFailed({
  message:
    "No service with a provider emulator is running on DATA_DIR. Start one with `npm start`, or name an emulator with --url."
})

const noKey = new CommandFailed({
  message: "The emulator needs the platform's key: set PROVIDER_SANDBOX_SECRET_KEY to the key that it was started with."
})

/**
 * The named emulator, otherwise that of the service that runs on the data directory. The key is the sandbox's, from the
 * settings or from that service: the production key is never sent.
 */
const findEmulator = (
  named: URL | undefined
): Effect.Effect<EmulatorAddress, SettingsError | LocalDefaultsFailed | CommandFailed> =>
  Effect.gen(function* () {
    const settings = yield* readSettings
    const emulator = Option.flatMap(yield* findLocalService(settings), ({ emulator }) => emulator)
    const url = Option.orElse(Option.fromNullable(named), () => Option.map(emulator, ({ url }) => url))
    const known = Option.map(emulator, ({ credentials }) => credentials)
    const configured = settings.provider.sandbox
    const credentials =
      named === undefined ? Option.orElse(known, () => configured) : Option.orElse(configured, () => known)
    if (Option.isNone(url)) return yield* nothingRuns
    if (Option.isNone(credentials)) return yield* noKey
    return { url: url.value, secretKey: credentials.value.secretKey }
  })

/** The time limit for an answer of the emulator, which answers at once or not at all. */
const answerTimeoutMillis = 10_000

const Refusal = Schema.parseJson(Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }))

/** Sends a request to the emulator's control interface; returns the decoded JSON. */
export const askEmulator = <A, I>(
  named: URL | undefined,
  path: string,
  body: unknown,
  answer: Schema.Schema<A, I>
): Effect.Effect<A, SettingsError | LocalDefaultsFailed | CommandFailed> =>
  Effect.gen(function* () {
    const { secretKey, url } = yield* findEmulator(named)
    const { ok, text } = yield* Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(new URL(path, url), {
          method: "POST",
          body: JSON.stringify(body),
          headers: { authorization: `Bearer ${Redacted.value(secretKey)}`, "content-type": "application/json" },
          signal: AbortSignal.any([signal, AbortSignal.timeout(answerTimeoutMillis)])
        })
        return { ok: response.ok, text: await response.text() }
      },
      catch: (cause) => new CommandFailed({ message: `The emulator at ${url.origin} can't be reached.`, cause })
    })
    if (!ok) {
      const refusal = Schema.decodeOption(Refusal)(text)
      return yield* new CommandFailed({
        message: Option.match(refusal, {
          onNone: () => `The server at ${url.origin} is not a provider emulator.`,
          onSome: ({ error }) => error.message
        })
      })
    }
    return yield* Schema.decode(Schema.parseJson(answer))(text).pipe(
      Effect.mapError(
        (cause) =>
          new CommandFailed({
            message: `The server at ${url.origin} is not a provider emulator of this version.`,
            cause
          })
      )
    )
  })
