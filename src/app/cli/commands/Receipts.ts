import { Console, Duration, Effect, Layer, Schema } from "effect"
import { WakeUp } from "../../../engine/queue/WakeUp.ts"
import { Organizations } from "../../../identity/organizations/Organizations.ts"
import { ReturnUrls } from "../../../identity/return-urls/ReturnUrls.ts"
import {
  type AccountNotAsked,
  type ListReceipts,
  type Receipt,
  type ReceiptDetail,
  type Replay,
  receiptOutcomes
} from "../../../inbound/Receipt.ts"
import { Receipts } from "../../../inbound/Receipts.ts"
import type { Progress } from "../../../inbound/Reconciliation.ts"
import { Accounts } from "../../../payments/Accounts.ts"
import { CheckoutSessions } from "../../../payments/checkout-sessions/CheckoutSessions.ts"
import type { Provider } from "../../../payments/Provider.ts"
import { Prices } from "../../../payments/prices/Prices.ts"
import { KeyedHash } from "../../../platform/kit/crypto/KeyedHash.ts"
import type { OrganizationId } from "../../../platform/kit/Ids.ts"
import type { Author } from "../../../platform/kit/Tenant.ts"
import { type Command, choice, command, form, optional } from "../Command.ts"
import { CommandFailed } from "../Failure.ts"
import {
  environmentOption,
  exampleOrganization,
  organizationOption,
  requireOrganization,
  timeOption
} from "../Fields.ts"
import { database, noProvider, operator, provider } from "../Installation.ts"
import { fields, table, time } from "../Output.ts"

/** `receipts list | show | replay`: the provider's notifications, and their events' delivery (contract 11). */

/** The workers are in other processes, which poll for due deliveries. */
const workersPoll = Layer.succeed(WakeUp, { announce: Effect.void, await: () => Effect.never })

/** No retention: these commands remove nothing. */
const kept = { receiptRetention: Duration.infinity }

/** These commands neither store nor match hashed values, so they need no master key. */
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
    Layer.provide(database)
  )

const services = receiptsOn(noProvider, noKeyedHash)

const servicesWithProvider = receiptsOn(provider, noKeyedHash)

const servicesForReplays = receiptsOn(provider, Layer.provide(KeyedHash.layer, provider))

/** A provider identifier: visible ASCII without spaces. */
const ProviderName = Schema.String.pipe(Schema.pattern(/^[\x21-\x7e]{1,255}$/))

const eventArgument = form(
  ProviderName,
  "<event>",
  "The event's id at the provider: evt_…",
  "An event's id at the provider has 1 to 255 visible characters: evt_…"
)

/** The earliest time that the other forms can express. Earlier ones are out of range for JavaScript or PostgreSQL. */
const firstTime = Date.parse("0001-01-01T00:00:00Z")

const agoOption = (meaning: string) =>
  timeOption(
    -1,
    (at) => at.getTime() >= firstTime,
    `${meaning}: '2 hours' ago, 2030-01-31 or 2030-01-31T12:00:00Z.`,
    "must be a duration ('2 hours'), a date or a time (2030-01-31T12:00:00Z)"
  )

const organizationIn = (organization: OrganizationId | undefined) =>
  organization === undefined
    ? Effect.succeed({})
    : Effect.as(requireOrganization(organization), { organizationId: organization })

const receiptRow = ({ duplicates, organizationId, outcome, providerEventId, reason, receivedAt, type }: Receipt) => [
  time(receivedAt),
  providerEventId,
  type,
  outcome,
  organizationId ?? "-",
  String(duplicates),
  reason ?? "-"
]

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
      ["Reconciled", receipt.reconciled ? "yes: no notification had come" : "no"],
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

export const receiptCommands: ReadonlyArray<Command> = [
  command({
    name: "receipts list",
    summary: "List the provider's notifications and the outcome of each, newest first.",
    example: `--environment sandbox --organization ${exampleOrganization} --outcome no_subscriber --since '2 hours'`,
    input: Schema.Struct({
      environment: environmentOption,
      organization: optional(organizationOption),
      outcome: optional(choice(receiptOutcomes, "Only those with this outcome.")),
      type: optional(
        form(
          ProviderName,
          "<event type>",
          "Only this type, by the provider's name, such as payment_intent.succeeded.",
          "must be a provider event type"
        )
      ),
      since: optional(agoOption("Only those received since then")),
      limit: form(
        Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, 100)),
        "<1 to 100>",
        "The most receipts to list: 1 to 100, default 10.",
        "must be 1 to 100, an integer"
      ).pipe(Schema.optionalWith({ exact: true, default: () => 10 })),
      before: optional(
        form(
          ProviderName,
          "<evt_…>",
          "The next page: the id that the previous page ends with, in JSON `next`.",
          "must be the id of an event at the provider"
        )
      )
    }),
    services,
    run: Effect.fnUntraced(function* ({ organization, ...query }) {
      const receipts = yield* Receipts
      const { data, has_more, next } = yield* receipts.list({ ...query, ...(yield* organizationIn(organization)) })
      return {
        json: { data, has_more, next },
        text: table(
          ["RECEIVED AT", "EVENT", "TYPE", "OUTCOME", "ORGANIZATION", "COPIES", "REASON"],
          data.map(receiptRow),
          has_more ? "There are no such receipts among those that one page reads." : "There are no such receipts."
        ),
        hints: next === null ? [] : [`There ${data.length < query.limit ? "may be" : "are"} more: --before ${next}`]
      }
    })
  }),
  command({
    name: "receipts show",
    summary: "Show a notification's receipt, its events, and the state of their deliveries.",
    example: "--environment sandbox evt_1AbCdEfGhIjKlMnO",
    argument: "event",
    input: Schema.Struct({ environment: environmentOption, event: eventArgument }),
    services,
    run: ({ environment, event }) =>
      Effect.map(
        Effect.flatMap(Receipts, (receipts) => receipts.get({ environment, providerEventId: event })),
        (receipt) => ({ json: receipt, text: receiptText(receipt) })
      )
  }),
  command({
    name: "receipts missing",
    summary: "List the provider's events that left no receipt: their notifications never came, or were lost.",
    example: "--environment sandbox --since '2 hours'",
    input: Schema.Struct({
      environment: environmentOption,
      organization: optional(organizationOption),
      since: agoOption("Only events that the provider created since then"),
      until: optional(agoOption("Only events that the provider created before then"))
    }),
    services: servicesWithProvider,
    run: Effect.fnUntraced(function* ({ organization, ...query }) {
      const receipts = yield* Receipts
      const { events, notAsked } = yield* receipts.missing({ ...query, ...(yield* organizationIn(organization)) })
      return {
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
        ),
        notes: notAsked.map(notAskedText),
        ...(notAsked.some(({ reason }) => reason === "failed") ? { failure: notAllAsked } : {})
      }
    })
  }),
  command({
    name: "receipts replay",
    summary:
      "Create the deliveries that are missing of an event, of receipts with an outcome, or of a time's events without receipts. Existing ones stay.",
    example: "--environment sandbox evt_1AbCdEfGhIjKlMnO",
    argument: "event",
    input: Schema.Struct({
      environment: environmentOption,
      organization: optional(
        organizationOption.annotations({
          description: "The organization of the event. An event without a receipt is stored as if it were reported now."
        })
      ),
      event: optional(eventArgument),
      outcome: optional(choice(receiptOutcomes, "All receipts with this outcome, instead of one event.")),
      since: optional(
        agoOption(
          "All events without a receipt that the provider created since then; with --outcome: received since then"
        )
      ),
      until: optional(agoOption("With --since alone: those that the provider created before then"))
    }),
    services: servicesForReplays,
    run: Effect.fnUntraced(function* ({ environment, event, organization, outcome, since, until }) {
      const receipts = yield* Receipts
      const author = yield* operator
      const where = { environment, ...(yield* organizationIn(organization)) }
      if (event === undefined ? (outcome ?? since) === undefined : (outcome ?? since ?? until) !== undefined) {
        return yield* new CommandFailed({ message: "Name either an event, --outcome or --since." })
      }
      if (until !== undefined && (since === undefined || outcome !== undefined)) {
        return yield* new CommandFailed({ message: "--until needs --since, without --outcome." })
      }
      if (event !== undefined) {
        const named = { environment, providerEventId: event }
        const replayed = yield* receipts.replay({ ...where, providerEventId: event }, author)
        return { json: { ...named, ...replayed }, text: replayText(replayed) }
      }
      const done = { stored: 0, refused: 0 }
      const tell = ({ refused, stored }: Progress) => {
        done.stored += stored
        done.refused += refused
        return stored + refused === 0 ? Effect.void : Console.error(doneText(done))
      }
      const notAsked =
        outcome !== undefined || since === undefined
          ? yield* replayOutcome(
              receipts,
              { ...where, ...(outcome === undefined ? {} : { outcome }), ...(since === undefined ? {} : { since }) },
              author,
              tell
            )
          : yield* receipts.replayLost({ ...where, since, until: until ?? new Date() }, author, (_, progress) =>
              tell(progress)
            )
      return {
        json: { ...done, notAsked },
        text: doneText(done),
        notes: notAsked.map(notAskedText),
        ...(notAsked.some(({ reason }) => reason === "failed") ? { failure: notAllAsked } : {})
      }
    })
  })
]

const doneText = ({ refused, stored }: Progress) =>
  `Stored: ${stored}${refused === 0 ? "" : `. Refused: ${refused}, which the log at --log-level warning names`}`

/** Replays all receipts with an outcome, page by page. */
const replayOutcome = Effect.fnUntraced(function* (
  receipts: Receipts["Type"],
  query: ListReceipts,
  author: Author,
  tell: (progress: Progress) => Effect.Effect<void>
) {
  let before: string | null | undefined
  do {
    const { data, next } = yield* receipts.list({ ...query, limit: 100, ...(before == null ? {} : { before }) })
    const changed = yield* Effect.forEach(data, ({ environment, providerEventId }) =>
      receipts.replay({ environment, providerEventId }, author).pipe(
        Effect.map((replay) => replay.changed),
        Effect.catchTag("ReplayRefused", ({ message }) =>
          Effect.as(Effect.logWarning(`${providerEventId}: ${message}`), null)
        )
      )
    )
    yield* tell({
      stored: changed.filter((one) => one === true).length,
      refused: changed.filter((one) => one === null).length
    })
    before = next
  } while (before !== null)
  return []
})

const notAskedText = ({ message, organizationId }: AccountNotAsked) =>
  `Not asked: organization ${organizationId}. ${message}`

const notAllAsked = new CommandFailed({
  message: "The provider could not be asked for the events of every account: run this again for those named above."
})
