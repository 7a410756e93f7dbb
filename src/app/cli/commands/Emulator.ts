import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { isTriggerType, type TriggerDescription, triggers } from "../../../emulator/triggers/TriggerList.ts"
import { readSettings, type SettingsError } from "../../../platform/settings/Settings.ts"
import type { LocalDefaultsFailed } from "../../local/Local.ts"
import { ask } from "../Ask.ts"
import { type Command, command, form, optional } from "../Command.ts"
import { CommandFailed } from "../Failure.ts"
import { accountOption, PlainHttpUrl } from "../Fields.ts"
import { findLocalService } from "../LocalService.ts"
import { fields, table } from "../Output.ts"

/** `emulator trigger | triggers`: triggers events at the local provider that no request of the platform causes. */

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

/** The named emulator, otherwise the running service's. The production key is never sent to it. */
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

const Refusal = Schema.parseJson(Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }))

const known: ReadonlyArray<TriggerDescription> = triggers

/** Names that a trigger's own options can't have. */
const reserved: ReadonlyArray<string> = ["type", "account"]

const EventSent = Schema.Struct({ id: Schema.String, type: Schema.String })
const Triggered = Schema.Struct({
  type: Schema.String,
  account: Schema.String,
  object: Schema.String,
  events: Schema.Array(EventSent),
  thin_events: Schema.Array(EventSent)
})

const linesOf = (label: string, sent: ReadonlyArray<typeof EventSent.Type>): ReadonlyArray<readonly [string, string]> =>
  sent.map(({ id, type }, index) => [index === 0 ? label : "", `${type} ${id}`])

export const emulatorCommands: ReadonlyArray<Command> = [
  command({
    name: "emulator trigger",
    summary: "Trigger an event at the local provider, which changes its objects and sends signed notifications.",
    example: 'charge.dispute.closed --options \'{"outcome": "won"}\'',
    argument: "type",
    input: Schema.Struct({
      type: form(
        Schema.String.pipe(Schema.filter(isTriggerType)),
        "<type>",
        "The trigger, as `emulator triggers` lists it.",
        (given) => `There is no trigger '${given}'. Available: ${known.map(({ type }) => type).join(", ")}.`
      ),
      account: optional(accountOption("The connected account of the event. Default: the only one.")),
      options: form(
        Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown })).pipe(
          Schema.filter((given) => !Object.keys(given).some((name) => reserved.includes(name)))
        ),
        "<JSON object>",
        "The trigger's own options, as `emulator triggers --json` explains them: '{\"amount\": 2500}'.",
        "must be a JSON object of the trigger's own options"
      ).pipe(Schema.optionalWith({ exact: true, default: () => ({}) })),
      url: optional(
        form(
          PlainHttpUrl,
          "<url>",
          "The emulator's URL. Default: that of the service that runs on DATA_DIR.",
          "must be an http or https URL, without a user name or a password"
        )
      )
    }),
    services: Layer.empty,
    run: Effect.fnUntraced(function* ({ options, url, ...named }) {
      const emulator = yield* findEmulator(url)
      const happened = yield* ask({
        url: new URL("/_emulator/trigger", emulator.url),
        server: "provider emulator",
        headers: { authorization: `Bearer ${Redacted.value(emulator.secretKey)}` },
        body: { ...options, ...named },
        answer: Triggered,
        refused: (_, text) =>
          Option.match(Schema.decodeOption(Refusal)(text), {
            onNone: () => `The server at ${emulator.url.origin} is not a provider emulator.`,
            onSome: ({ error }) => error.message
          })
      })
      return {
        json: happened,
        text: fields([
          ["Account", happened.account],
          ["Object", happened.object],
          ...linesOf("Events", happened.events),
          ...linesOf("Thin events", happened.thin_events)
        ])
      }
    })
  }),
  command({
    name: "emulator triggers",
    summary: "List all triggers; --json shows what each option means.",
    example: "--json",
    input: Schema.Struct({}),
    services: Layer.empty,
    run: () =>
      Effect.succeed({
        json: known,
        text: `${table(
          ["TYPE", "WHAT HAPPENS"],
          known.map(({ description, type }) => [type, description]),
          "There are no triggers."
        )}\n\nTheir options: connected-payments emulator triggers --json. Each also takes api_version.`
      })
  })
]
