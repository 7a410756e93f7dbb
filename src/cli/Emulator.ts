import { Effect, Layer, Schema } from "effect"
import { isTriggerType, type TriggerDescription, triggers } from "../emulator/triggers/TriggerList.ts"
import { type Command, command, form, optional } from "./Command.ts"
import { askEmulator } from "./EmulatorControl.ts"
import { accountOption, PlainHttpUrl } from "./Fields.ts"
import { fields, table } from "./Output.ts"

/** `emulator trigger | triggers`: triggers events at the local provider that no request of the platform causes. */

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
    run: ({ options, url, ...named }) =>
      Effect.map(askEmulator(url, "/_emulator/trigger", { ...options, ...named }, Triggered), (happened) => ({
        json: happened,
        text: fields([
          ["Account", happened.account],
          ["Object", happened.object],
          ...linesOf("Events", happened.events),
          ...linesOf("Thin events", happened.thin_events)
        ])
      }))
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
