import { Args, Command, HelpDoc, Options } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { isTriggerType, type TriggerDescription, type TriggerType, triggers } from "../emulator/triggers/TriggerList.ts"
import { askEmulator } from "./EmulatorControl.ts"
import { formOption, plainHttpUrl } from "./Fields.ts"
import { fields, jsonOption, show, table } from "./Output.ts"
import { described, type KnownCommand } from "./Synopsis.ts"

/** `emulator trigger | triggers`: triggers events at the local provider that no request of the platform causes. */

const known: ReadonlyArray<TriggerDescription> = triggers

const typeArgument = Args.text({ name: "type" }).pipe(
  Args.mapEffect(
    (text): Effect.Effect<TriggerType, HelpDoc.HelpDoc> =>
      isTriggerType(text)
        ? Effect.succeed(text)
        : Effect.fail(
            HelpDoc.p(`There is no trigger '${text}'. Available: ${known.map(({ type }) => type).join(", ")}.`)
          )
  ),
  Args.withDescription("The trigger, as `emulator triggers` lists it.")
)

const accountOption = formOption(
  "account",
  Schema.decodeOption(Schema.String.pipe(Schema.pattern(/^acct_\w{1,64}$/))),
  "must be the id of a provider account (acct_…)"
).pipe(
  Options.withPseudoName("<acct_…>"),
  Options.withDescription("The connected account of the event. Default: the only one."),
  Options.optional
)

const urlOption = formOption(
  "url",
  plainHttpUrl,
  "must be an http or https URL, without a user name or a password"
).pipe(
  Options.withPseudoName("<url>"),
  Options.withDescription("The emulator's URL. Default: that of the service that runs on DATA_DIR."),
  Options.optional
)

/** Names that a trigger's own options can't have. */
const reserved: ReadonlyArray<string> = ["type", "account"]

const optionsOption = formOption(
  "options",
  (text) =>
    Option.filter(
      Schema.decodeOption(Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown })))(text),
      (given) => !Object.keys(given).some((name) => reserved.includes(name))
    ),
  "must be a JSON object of the trigger's own options"
).pipe(
  Options.withPseudoName("<JSON object>"),
  Options.withDescription(
    "The trigger's own options, as `emulator triggers --json` explains them: '{\"amount\": 2500}'."
  ),
  Options.withDefault({})
)

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

const trigger = described(
  Command.make(
    "trigger",
    { type: typeArgument, account: accountOption, options: optionsOption, url: urlOption, json: jsonOption },
    ({ account, json, options, type, url }) =>
      Effect.gen(function* () {
        const request = { ...options, type, ...(Option.isSome(account) ? { account: account.value } : {}) }
        const happened = yield* askEmulator(url, "/_emulator/trigger", request, Triggered)
        yield* show(json, {
          json: happened,
          text: fields([
            ["Account", happened.account],
            ["Object", happened.object],
            ...linesOf("Events", happened.events),
            ...linesOf("Thin events", happened.thin_events)
          ])
        })
      })
  ),
  {
    command: "emulator trigger",
    summary: "Trigger an event at the local provider, which changes its objects and sends signed notifications.",
    example: 'charge.dispute.closed --options \'{"outcome": "won"}\''
  }
)

const list = described(
  Command.make("triggers", { json: jsonOption }, ({ json }) =>
    show(json, {
      json: known,
      text: `${table(
        ["TYPE", "WHAT HAPPENS"],
        known.map(({ description, type }) => [type, description]),
        "There are no triggers."
      )}\n\nTheir options: connected-payments emulator triggers --json. Each also takes api_version.`
    })
  ),
  {
    command: "emulator triggers",
    summary: "List all triggers; --json shows what each option means.",
    example: "--json"
  }
)

/** The command with its subcommands. */
export const emulator = Command.make("emulator").pipe(
  Command.withDescription("Trigger events at the local provider emulator."),
  Command.withSubcommands([trigger.command, list.command])
)

/** The commands, for the help. */
export const emulatorCommands: ReadonlyArray<KnownCommand> = [trigger.known, list.known]
