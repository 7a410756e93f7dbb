import { Args, Command, HelpDoc, Options } from "@effect/cli"
import { Console, Duration, Effect, Layer, Option, Schema } from "effect"
import { Organizations } from "../identity/organizations/Organizations.ts"
import { ReturnUrls } from "../identity/return-urls/ReturnUrls.ts"
import { type Receipt, type ReceiptDetail, Receipts, type Replay, receiptOutcomes } from "../inbound/Receipts.ts"
import { KeyedHash } from "../kit/KeyedHash.ts"
import { Accounts } from "../provider/Accounts.ts"
import { CheckoutSessions } from "../provider/checkout/CheckoutSessions.ts"
import type { Provider } from "../provider/Provider.ts"
import { Prices } from "../provider/prices/Prices.ts"
import { WakeUp } from "../publishing/WakeUp.ts"
import { CommandFailed } from "./Failure.ts"
import {
  durationOrTime,
  environmentOption,
  formOption,
  moment,
  organizationOption,
  parsedOption,
  requireOrganization
} from "./Fields.ts"
import { database, Installation, noProvider, provider } from "./Installation.ts"
import { operator } from "./Operator.ts"
import { fields, jsonOption, show, table, time } from "./Output.ts"
import { described, exampleOrganization, type KnownCommand } from "./Synopsis.ts"

/**
 * `receipts list | show | replay`: the provider's notifications, their outcomes, and the delivery of events that were
 * missed (contract 11).
 */

/** The workers are in other processes, which poll for due deliveries. */
const workersPoll = Layer.succeed(WakeUp, { announce: Effect.void, await: Effect.never })

/** No retention: these commands remove nothing. */
const kept = { receiptRetention: Duration.infinity }

/** These commands neither store nor match what is hashed, so that they need no master key. */
const noKeyedHash = Layer.succeed(KeyedHash, () => {
  throw new Error("Only a replay may hash")
})

const receiptsOn = <E, R, E2, R2>(
  providerLayer: Layer.Layer<Provider, E, R>,
  keyedHash: Layer.Layer<KeyedHash, E2, R2>
) =>
  Layer.merge(Receipts.layer(kept), Organizations.layer).pipe(
    Layer.provide([CheckoutSessions.layer, workersPoll, keyedHash]),
    Layer.provide([Prices.layer, ReturnUrls.layer]),
    Layer.provide(Layer.provideMerge(Accounts.layer, providerLayer)),
    Layer.provide(database),
    Layer.provide(Installation.layer)
  )

const services = receiptsOn(noProvider, noKeyedHash)

const providerHere = Layer.provide(provider, Installation.layer)

const servicesWithProvider = receiptsOn(providerHere, noKeyedHash)

const servicesForReplays = receiptsOn(providerHere, Layer.provide(KeyedHash.layer, providerHere))

/** A provider identifier: visible ASCII without spaces. */
const providerName = Schema.decodeOption(Schema.String.pipe(Schema.pattern(/^[\x21-\x7e]{1,255}$/)))

const eventArgument = Args.text({ name: "event" }).pipe(
  Args.mapEffect((text) =>
    Option.match(providerName(text), {
      onNone: () => Effect.fail(HelpDoc.p("An event's id at the provider has 1 to 255 visible characters: evt_…")),
      onSome: Effect.succeed
    })
  ),
  Args.withDescription("The event's id at the provider: evt_…")
)

const typeOption = formOption("type", providerName, "must be a provider event type").pipe(
  Options.withPseudoName("<event type>"),
  Options.withDescription("Only this type, by the provider's name, such as payment_intent.succeeded."),
  Options.optional
)

const outcomeOption = Options.choice("outcome", receiptOutcomes).pipe(
  Options.withDescription("Only those with this outcome."),
  Options.optional
)

/** The first time that the other forms can name. What is longer ago is no date of JavaScript's, or none of PostgreSQL's. */
const firstTime = Date.parse("0001-01-01T00:00:00Z")

const timeAgo = (text: string, now: number): Option.Option<Date> =>
  Option.map(
    Option.filter(Duration.decodeUnknown(text), Duration.isFinite),
    (duration) => new Date(now - Duration.toMillis(duration))
  ).pipe(Option.filter((date) => date.getTime() >= firstTime))

const timeOption = (name: "since" | "until", meaning: string) =>
  Options.text(name).pipe(
    Options.withPseudoName(durationOrTime),
    Options.withDescription(`${meaning}: '2 hours' ago, 2030-01-31 or 2030-01-31T12:00:00Z.`),
    parsedOption(
      name,
      (text) => Option.orElse(moment(text), () => timeAgo(text, Date.now())),
      "must be a duration ('2 hours'), a date or a time (2030-01-31T12:00:00Z)"
    )
  )

const sinceOption = Options.optional(timeOption("since", "Only those received since then"))

const limitOption = Options.integer("limit").pipe(
  Options.withPseudoName("<1 to 100>"),
  Options.withDescription("The most receipts to list: 1 to 100, default 10."),
  Options.withDefault(10),
  parsedOption("limit", Schema.decodeOption(Schema.Int.pipe(Schema.between(1, 100))), "must be 1 to 100")
)

const beforeOption = formOption("before", providerName, "must be the id of an event at the provider").pipe(
  Options.withPseudoName("<evt_…>"),
  Options.withDescription("The next page: the id that the previous page ends with, in JSON `next`."),
  Options.optional
)

const receiptRow = ({ duplicates, organizationId, outcome, providerEventId, reason, receivedAt, type }: Receipt) => [
  time(receivedAt),
  providerEventId,
  type,
  outcome,
  organizationId ?? "-",
  String(duplicates),
  reason ?? "-"
]

const list = described(
  Command.make(
    "list",
    {
      environment: environmentOption,
      organization: Options.optional(organizationOption),
      outcome: outcomeOption,
      type: typeOption,
      since: sinceOption,
      limit: limitOption,
      before: beforeOption,
      json: jsonOption
    },
    ({ before, environment, json, limit, organization, outcome, since, type }) =>
      Effect.gen(function* () {
        const receipts = yield* Receipts
        yield* Effect.transposeMapOption(organization, requireOrganization)
        const { data, has_more, next } = yield* receipts.list({
          environment,
          limit,
          ...Option.match(organization, { onNone: () => ({}), onSome: (organizationId) => ({ organizationId }) }),
          ...Option.match(outcome, { onNone: () => ({}), onSome: (outcome) => ({ outcome }) }),
          ...Option.match(type, { onNone: () => ({}), onSome: (type) => ({ type }) }),
          ...Option.match(since, { onNone: () => ({}), onSome: (since) => ({ since }) }),
          ...Option.match(before, { onNone: () => ({}), onSome: (before) => ({ before }) })
        })
        yield* show(json, {
          json: { data, has_more, next },
          text: table(
            ["RECEIVED AT", "EVENT", "TYPE", "OUTCOME", "ORGANIZATION", "COPIES", "REASON"],
            data.map(receiptRow),
            has_more ? "There are no such receipts among those that one page reads." : "There are no such receipts."
          )
        })
        if (next !== null && !json) {
          yield* Console.error(`There ${data.length < limit ? "may be" : "are"} more: --before ${next}`)
        }
      })
  ).pipe(Command.provide(services)),
  {
    command: "receipts list",
    summary: "List the provider's notifications and the outcome of each, newest first.",
    example: `--environment sandbox --organization ${exampleOrganization} --outcome no_subscriber --since '2 hours'`
  }
)

const receiptText = ({ events, ...receipt }: ReceiptDetail) =>
  [
    fields([
      ["Event", receipt.providerEventId],
      ["Type", receipt.type],
      ["Environment", receipt.environment],
      ["Live mode", receipt.livemode ? "yes" : "no"],
      ["Account", receipt.accountId ?? "-"],
      ["Organization", receipt.organizationId ?? "-"],
      ["Outcome", receipt.outcome],
      ["Reason", receipt.reason ?? "-"],
      ["Further copies", String(receipt.duplicates)],
      ["Created at", time(receipt.providerCreatedAt)],
      ["Received at", time(receipt.receivedAt)]
    ]),
    table(
      ["EVENT", "TYPE", "QUEUED", "DELIVERED", "FAILED", "SKIPPED"],
      events.map(({ deliveries, id, skipped, type }) => [
        id,
        type,
        ...[deliveries.queued, deliveries.delivered, deliveries.failed, skipped].map(String)
      ]),
      "It produced no event."
    )
  ].join("\n\n")

const showOne = described(
  Command.make(
    "show",
    { environment: environmentOption, json: jsonOption, event: eventArgument },
    ({ environment, event, json }) =>
      Effect.gen(function* () {
        const receipts = yield* Receipts
        const receipt = yield* receipts.get({ environment, providerEventId: event })
        yield* show(json, { json: receipt, text: receiptText(receipt) })
      })
  ).pipe(Command.provide(services)),
  {
    command: "receipts show",
    summary: "Show a notification's receipt, its events, and the state of their deliveries.",
    example: "--environment sandbox evt_1AbCdEfGhIjKlMnO"
  }
)

const replayText = ({ changed, deliveriesMade, events, outcome }: Replay) =>
  !changed
    ? `Nothing was missing: no delivery was created. The receipt's outcome: ${outcome}`
    : deliveriesMade === 0
      ? `Stored, but no delivery was created: no active endpoint takes it. The receipt's outcome: ${[outcome, ...events.map(({ id, type }) => `${type} ${id}`)].join("\n")}`
      : [
          `Deliveries created: ${deliveriesMade}`,
          table(
            ["EVENT", "TYPE", "DELIVERIES CREATED"],
            events.map(({ deliveriesMade, id, type }) => [id, type, String(deliveriesMade)]),
            ""
          )
        ].join("\n\n")

const missing = described(
  Command.make(
    "missing",
    {
      environment: environmentOption,
      organization: Options.optional(organizationOption),
      since: timeOption("since", "Only events that the provider created since then"),
      until: Options.optional(timeOption("until", "Only events that the provider created before then")),
      json: jsonOption
    },
    ({ environment, json, organization, since, until }) =>
      Effect.gen(function* () {
        const receipts = yield* Receipts
        yield* Effect.transposeMapOption(organization, requireOrganization)
        const { events, notAsked } = yield* receipts.missing({
          environment,
          since,
          ...Option.match(organization, { onNone: () => ({}), onSome: (organizationId) => ({ organizationId }) }),
          ...Option.match(until, { onNone: () => ({}), onSome: (until) => ({ until }) })
        })
        yield* show(json, {
          json: { data: events, notAsked },
          text: table(
            ["CREATED AT", "EVENT", "TYPE", "ORGANIZATION"],
            events.map(({ organizationId, providerCreatedAt, providerEventId, type }) => [
              time(providerCreatedAt),
              providerEventId,
              type,
              organizationId
            ]),
            notAsked.length === 0
              ? "Every event of that time has its receipt."
              : "Every event of that time has its receipt, of the accounts that could be asked."
          )
        })
        yield* Effect.forEach(notAsked, ({ message, organizationId }) =>
          Console.error(`Not asked: organization ${organizationId}. ${message}`)
        )
        if (notAsked.some(({ reason }) => reason === "failed")) {
          return yield* new CommandFailed({
            message:
              "The provider could not be asked for the events of every account: run this again for those named above."
          })
        }
      })
  ).pipe(Command.provide(servicesWithProvider)),
  {
    command: "receipts missing",
    summary: "List the provider's events that left no receipt: their notifications never came, or were lost.",
    example: "--environment sandbox --since '2 hours'"
  }
)

const replay = described(
  Command.make(
    "replay",
    {
      environment: environmentOption,
      organization: organizationOption.pipe(
        Options.withDescription("Whose event it is. If it has no receipt, it is stored as if it were reported now."),
        Options.optional
      ),
      json: jsonOption,
      event: eventArgument
    },
    ({ environment, event, json, organization }) =>
      Effect.gen(function* () {
        const receipts = yield* Receipts
        yield* Effect.transposeMapOption(organization, requireOrganization)
        const replayed = yield* receipts.replay(
          {
            environment,
            providerEventId: event,
            ...Option.match(organization, { onNone: () => ({}), onSome: (organizationId) => ({ organizationId }) })
          },
          yield* operator
        )
        yield* show(json, {
          json: { environment, providerEventId: event, ...replayed },
          text: replayText(replayed)
        })
      })
  ).pipe(Command.provide(servicesForReplays)),
  {
    command: "receipts replay",
    summary: "Fetch a notification's event again and create the deliveries that are missing. Existing ones stay.",
    example: "--environment sandbox evt_1AbCdEfGhIjKlMnO"
  }
)

/** The command with its subcommands. */
export const receipts = Command.make("receipts").pipe(
  Command.withDescription("Show the provider's notifications, and replay what was missed."),
  Command.withSubcommands([list.command, showOne.command, missing.command, replay.command])
)

/** The commands, for the help. */
export const receiptCommands: ReadonlyArray<KnownCommand> = [list.known, showOne.known, missing.known, replay.known]
