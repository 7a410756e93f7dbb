import { Args, Command, HelpDoc, Options } from "@effect/cli"
import { FetchHttpClient } from "@effect/platform"
import { Config, Console, Duration, Effect, Option, Redacted, Schema, Stream } from "effect"
import { type EventStreamItem, eventStream } from "../client/EventStream.ts"
import { newSigningSecret, standardWebhooksSecretOf } from "../endpoints/Secrets.ts"
import { EventType } from "../events/Catalog.ts"
import { CommandFailed } from "./Failure.ts"
import { formOption, plainHttpUrl } from "./Fields.ts"
import { type ForwardTo, forward } from "./Forwarding.ts"
import { fields, jsonOption, printable, show } from "./Output.ts"
import { sandboxService, triggerAt } from "./SandboxService.ts"
import { apiKeyOption, isPlainSecret, notPlain, readApiKey, serviceUrlOption } from "./ServiceOptions.ts"
import { described, type KnownCommand } from "./Synopsis.ts"

/**
 * `listen` and `trigger`: a developer's machine gets the sandbox's events, even behind a firewall, and makes them happen.
 * Both need only the service's URL and a sandbox key.
 */

const isEventType = Schema.is(EventType)
const knownTypes = EventType.literals.join(", ")

const forwardOption = formOption(
  "forward-to",
  plainHttpUrl,
  "must be an http or https URL, without a user name or a password"
).pipe(
  Options.withPseudoName("<url>"),
  Options.withDescription("Where to post each event: http://localhost:3000/webhooks.")
)

const eventsOption = formOption(
  "events",
  (text) => Option.filter(Option.some(text.split(",")), (types) => types.every(isEventType)),
  `must be event types, separated by commas: ${knownTypes}`
).pipe(
  Options.withPseudoName("<type,…>"),
  Options.withDescription(
    "The event types to listen to, separated by commas: payment.succeeded,payment.refunded. Default: all."
  ),
  Options.withDefault<ReadonlyArray<string>>([])
)

const secretOption = formOption(
  "secret-env",
  (name) => (/^[A-Za-z_]\w*$/.test(name) ? Option.some(name) : Option.none()),
  "must be the name of an environment variable"
).pipe(
  Options.withPseudoName("<name>"),
  Options.withDescription(
    "The environment variable that holds the signing secret, so that it stays the same. Default: a new secret each time."
  ),
  Options.optional
)

const secretOf = (variable: Option.Option<string>) =>
  Option.match(variable, {
    onNone: () => Effect.sync(newSigningSecret),
    onSome: (name) =>
      Config.redacted(name).pipe(
        Effect.filterOrFail((secret) => Redacted.value(secret) !== ""),
        Effect.mapError(
          () => new CommandFailed({ message: `Put the signing secret into the environment variable ${name}.` })
        ),
        Effect.filterOrFail(isPlainSecret, () => notPlain("signing secret", name))
      )
  })

const clockTime = (): string => new Date().toTimeString().slice(0, 8)

/** Reports an item of the stream, once it has been passed on. */
const handle = (to: ForwardTo, asJson: boolean, item: EventStreamItem): Effect.Effect<void> => {
  switch (item._tag) {
    case "Connected":
      return item.lookBackExceeded
        ? Console.error(
            `${clockTime()}  Connected again. EVENTS ARE MISSING: those before ${item.from.toISOString()} are too long ago to be streamed.`
          )
        : Console.error(`${clockTime()}  Connected: waiting for events.`)
    case "Interrupted":
      return Console.error(
        `${clockTime()}  Interrupted: ${printable(item.reason)}. Trying again in ${Math.ceil(Duration.toSeconds(item.retryIn))} s; nothing is lost.`
      )
    case "Event":
      return Effect.flatMap(forward(to, item), ({ answer, millis, status }) =>
        Console.log(
          asJson
            ? JSON.stringify({ id: item.id, type: item.type, status, answer, millis })
            : `${clockTime()}  ${printable(`${item.type}  ${item.id}  -> ${answer}`)} (${millis} ms)`
        )
      )
  }
}

const listen = described(
  Command.make(
    "listen",
    {
      forwardTo: forwardOption,
      events: eventsOption,
      url: serviceUrlOption,
      keyVariable: apiKeyOption,
      secretVariable: secretOption,
      json: jsonOption
    },
    ({ events, forwardTo, json, keyVariable, secretVariable, url }) =>
      Effect.gen(function* () {
        const apiKey = yield* readApiKey(keyVariable)
        const secret = yield* secretOf(secretVariable)
        const { organizationId } = yield* sandboxService(url, apiKey)
        const shown = Redacted.value(secret)
        yield* Console.error(
          fields([
            ["Organization", `${organizationId}, sandbox`],
            ["Forwarding to", forwardTo.href],
            ["Signing secret", shown],
            ["For Standard Webhooks", standardWebhooksSecretOf(shown)],
            ["To stop", "Ctrl-C"]
          ])
        )
        const to = { url: forwardTo, secret }
        yield* eventStream({ baseUrl: url, organizationId, apiKey, types: events }).pipe(
          // One after another, in the order of the stream: what a developer looks at should be readable
          Stream.runForEach((item) => handle(to, json, item)),
          Effect.mapError(({ message }) => new CommandFailed({ message })),
          Effect.provide(FetchHttpClient.layer),
          Effect.onInterrupt(() => Console.error("Stopped."))
        )
      })
  ),
  {
    command: "listen",
    summary: "Post the sandbox's events to a program on this machine, signed, as they come.",
    example: "--forward-to http://localhost:3000/webhooks"
  }
)

const trigger = described(
  Command.make(
    "trigger",
    {
      type: Args.text({ name: "type" }).pipe(
        Args.mapEffect((text) =>
          isEventType(text)
            ? Effect.succeed(text)
            : Effect.fail(HelpDoc.p(`There is no event type '${text}'. Available: ${knownTypes}.`))
        ),
        Args.withDescription(`The event type: ${knownTypes}.`)
      ),
      url: serviceUrlOption,
      keyVariable: apiKeyOption,
      json: jsonOption
    },
    ({ json, keyVariable, type, url }) =>
      Effect.gen(function* () {
        const service = yield* sandboxService(url, yield* readApiKey(keyVariable))
        const triggered = yield* triggerAt(service, type)
        yield* show(json, {
          json: triggered,
          text:
            triggered.origin === "provider"
              ? `The local provider makes ${type} happen: the event comes like any other.`
              : `A synthetic ${type} is on its way to those who listen: ${triggered.eventId}`
        })
      })
  ),
  {
    command: "trigger",
    summary: "Make an event happen in the sandbox.",
    example: "payment.succeeded"
  }
)

export const listenCommand = listen.command
export const triggerCommand = trigger.command

/** The commands, for the help. */
export const listenCommands: ReadonlyArray<KnownCommand> = [listen.known, trigger.known]
